"""The emulation of CUDA on the CPU: what it computes, and the mistakes that it must show."""

import re

import pytest
import torch

from pipeline.backends.backend import LaunchError
from pipeline.backends.cuda.emulator import take_memory_faults
from pipeline.records.configuration.kernel import LaunchFormulas
from tests.backends.cuda.cuda_jobs import emulated, written_job
from tests.selection import slow_unless

SHARED = LaunchFormulas(grid=(1,), block=(64,), shared_memory="4 * n")
PRELUDE = 'extern "C" __global__ void kernel(const float* x, float* y, long long n)'


def launch_of(folder, body, *, before="", launch=None, size=64, **tunables):
    """A kernel with this body, built for the CPU; `i` is the thread's number."""
    source = f"{before}\n{PRELUDE} {{\n    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n{body}\n}}\n"
    job = written_job(folder, source, launch=launch, size=size, **tunables)
    return emulated(job, folder / "compiled", folder)


def run(launch, size=64):
    """y of one call on x = 1, 2, 3, …"""
    x = torch.arange(1.0, size + 1)
    y = torch.full((size,), -1.0)
    launch({"x": x, "y": y})
    return y


def test_grid_and_tunables(tmp_path):
    """Every thread of every block runs once, with its own indices; macros are tunables."""
    body = "    if (i < n) y[i] = FACTOR * x[i] + gridDim.x;"
    y = run(launch_of(tmp_path, body, size=150, FACTOR=2), 150)
    assert torch.equal(y, 2 * torch.arange(1.0, 151) + 3)


@pytest.mark.slow
def test_empty_grid_launches_nothing(tmp_path):
    """As no call of CUDA with an empty grid is legal."""
    assert run(launch_of(tmp_path, "    y[i] = 0;", size=1), 0).numel() == 0


def test_shuffles_and_votes(tmp_path):
    """Each by its definition in the programming guide, segments and lanes without a source included."""
    body = """
    float value = x[i];
    const unsigned all = 0xFFFFFFFFu;
    const float up = __shfl_up_sync(all, value, 3, 16), down = __shfl_down_sync(all, value, 3, 16);
    const float across = __shfl_xor_sync(all, value, 5), first = __shfl_sync(all, value, 2, 8);
    const int odd = __popcount(__ballot_sync(all, int(value) % 2));
    y[i] = up + 100 * down + 10000 * across + 1000000 * (first + odd - 16);
    """
    launch = launch_of(tmp_path, body.replace("__popcount", "__builtin_popcount"))
    lane = torch.arange(64) % 32
    base = torch.arange(64) - lane + 1
    up = torch.where(lane % 16 >= 3, lane - 3, lane)
    down = torch.where(lane % 16 + 3 < 16, lane + 3, lane)
    expected = [base + each for each in (up, down, lane ^ 5, lane // 8 * 8 + 2)]
    scales = (1.0, 100.0, 10000.0, 1000000.0)
    assert torch.equal(run(launch), sum(scale * each for scale, each in zip(scales, expected, strict=True)))


def test_lanes_that_took_one_branch(tmp_path):
    """Filtered with one atomic operation for those lanes of a warp that take the same branch."""
    place = """
        const unsigned mask = __activemask();
        const int leader = __ffs(mask) - 1, rank = __popc(mask & ((1u << threadIdx.x % 32) - 1u));
        float start = 0;
        if (rank == 0) start = atomicAdd(&taken, float(__popc(mask)));
        y[int(__shfl_sync(mask, start, leader)) + rank] = x[i];
    """
    body = f"""
    __shared__ float taken;
    if (threadIdx.x == 0) taken = 0;
    __syncthreads();
    if (int(x[i]) % 3 == 0) {{ {place} }}
    else if (int(x[i]) % 3 == 1) {{ {place} }}
    """
    y = run(launch_of(tmp_path, body))
    kept = torch.arange(1.0, 65)
    kept = kept[kept % 3 != 2]
    assert torch.equal(y[: len(kept)].sort().values, kept)
    assert (y[len(kept) :] == -1.0).all()


@pytest.mark.slow
def test_static_and_dynamic_shared_memory(tmp_path):
    """Both are the block's, and barriers order what is written and read."""
    body = """
    __shared__ float still[64];
    extern __shared__ float moving[];
    still[threadIdx.x] = x[i];
    moving[63 - threadIdx.x] = x[i];
    __syncthreads();
    y[i] = still[63 - threadIdx.x] + moving[threadIdx.x];
    """
    y = run(launch_of(tmp_path, body, launch=SHARED))
    assert torch.equal(y, 2 * torch.arange(64.0, 0.0, -1.0))


@pytest.mark.slow
def test_shared_memory_is_not_zero(tmp_path):
    """What is read before it was written is NaN, in the second block as in the first."""
    body = """
    __shared__ float still[64];
    extern __shared__ float moving[];
    y[i] = still[threadIdx.x] + 0 * moving[threadIdx.x];
    still[threadIdx.x] = moving[threadIdx.x] = 0;
    """
    launch = LaunchFormulas(grid=(2,), block=(64,), shared_memory=256)
    assert run(launch_of(tmp_path, body, launch=launch, size=128), 128).isnan().all()


@pytest.mark.slow
def test_a_missing_barrier_changes_from_call_to_call(tmp_path):
    """Fibres run in the other order in every other call, so a thread reads too early in one of the two."""
    body = """
    __shared__ float still[64];
    still[threadIdx.x] = x[i];
    y[i] = still[63 - threadIdx.x];
    """
    launch = launch_of(tmp_path, body)
    first, second = run(launch), run(launch)
    assert not torch.equal(first, second)


COPY = """
    __shared__ __align__(16) float still[64];
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(still + 4 * threadIdx.x));
    if (threadIdx.x < 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                                       :: "r"(to), "l"(x + 4 * threadIdx.x), "r"(12) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    WAIT
    __syncthreads();
    y[i] = still[threadIdx.x];
"""


@pytest.mark.slow
def test_asynchronous_copies_with_zeros(tmp_path):
    """Of 16 bytes 12 are read, the others become 0, whether the copy lands early or late."""
    launch = launch_of(tmp_path, COPY.replace("WAIT", 'asm volatile("cp.async.wait_group %0;" :: "n"(0));'))
    expected = torch.arange(1.0, 65).reshape(16, 4)
    expected[:, 3] = 0
    for _ in range(2):
        assert torch.equal(run(launch), expected.flatten())


@pytest.mark.slow
def test_a_copy_that_nobody_waits_for(tmp_path):
    """It lands as late as it may: never, in one of two calls."""
    launch = launch_of(tmp_path, COPY.replace("WAIT", 'asm volatile("cp.async.wait_group 1;");'))
    assert run(launch).isnan().any() or run(launch).isnan().any()


MATRIX = r"""
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32"
"""


@pytest.mark.parametrize("name", [pytest.param("f16", marks=pytest.mark.slow), "bf16"])
def test_matrix_instruction_by_elements(tmp_path, name):
    """Fragments filled by the tables of the PTX ISA, element by element, without ldmatrix: a b + c."""
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[name]
    generator = torch.Generator().manual_seed(1)
    a = torch.randn(16, 16, generator=generator).to(dtype)
    b = torch.randn(16, 8, generator=generator).to(dtype)
    c = torch.randn(16, 8, generator=generator)
    body = """
    const unsigned short* a = reinterpret_cast<const unsigned short*>(x);   // [16, 16]
    const unsigned short* b = a + 256;                                      // [16, 8]
    const float* c = x + 192;                                               // [16, 8]
    const int lane = threadIdx.x, group = lane / 4, in_group = lane % 4;
    unsigned fa[4] = {}, fb[2] = {};
    for (int e = 0; e < 8; ++e) {
        const int row = (e < 2 || (e >= 4 && e < 6)) ? group : group + 8;
        const int col = in_group * 2 + (e & 1) + (e < 4 ? 0 : 8);
        fa[e / 2] |= unsigned(a[row * 16 + col]) << 16 * (e % 2);
    }
    for (int e = 0; e < 4; ++e) {
        const int row = in_group * 2 + (e & 1) + (e < 2 ? 0 : 8);
        fb[e / 2] |= unsigned(b[row * 8 + group]) << 16 * (e % 2);
    }
    float d[4];
    for (int e = 0; e < 4; ++e) d[e] = c[(e < 2 ? group : group + 8) * 8 + in_group * 2 + (e & 1)];
    asm volatile(MMA " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    for (int e = 0; e < 4; ++e) y[(e < 2 ? group : group + 8) * 8 + in_group * 2 + (e & 1)] = d[e];
    """
    before = MATRIX.replace("TYPE", f'"{name}"')
    launch = launch_of(tmp_path, body, before=before, launch=LaunchFormulas(grid=(1,), block=(32,)), size=320)
    y = torch.full((320,), -1.0)
    bits = torch.cat([a.flatten(), b.flatten()]).view(torch.float32)
    launch({"x": torch.cat([bits, c.flatten()]), "y": y})
    expected = a.double() @ b.double() + c
    assert (y[:128].reshape(16, 8) - expected).abs().max() < 1e-5
    assert y[128:].eq(-1).all()


@pytest.mark.slow
def test_matrix_loads(tmp_path):
    """ldmatrix by its definition: lane l gets row l / 4, columns 2 (l % 4) and the next; or transposed."""
    body = """
    __shared__ __align__(16) unsigned short tile[8 * 8];
    for (int e = threadIdx.x; e < 64; e += 32) tile[e] = e;
    __syncthreads();
    const unsigned row = static_cast<unsigned>(__cvta_generic_to_shared(tile + threadIdx.x % 8 * 8));
    unsigned plain, turned;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(plain) : "r"(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(turned) : "r"(row));
    y[threadIdx.x] = 100 * (plain & 0xFFFF) + (plain >> 16);
    y[32 + threadIdx.x] = 100 * (turned & 0xFFFF) + (turned >> 16);
    """
    y = run(launch_of(tmp_path, body, launch=LaunchFormulas(grid=(1,), block=(32,))))
    lane = torch.arange(32)
    plain = 8 * (lane // 4) + 2 * (lane % 4)
    turned = 16 * (lane % 4) + lane // 4
    assert torch.equal(y, torch.cat([100 * plain + plain + 1, 100 * turned + turned + 8]).float())


@pytest.mark.parametrize(
    ("body", "text"),
    slow_unless(
        lambda case: "deadlock" in case[1],
        [
            (
                "if (threadIdx.x < 7) __syncwarp(); else __syncthreads(); y[i] = 0;",
                "deadlock: 7 threads wait for lanes of their warp",
            ),
            (
                "if (i % 2) __syncwarp(); else __shfl_sync(~0u, i, 0); y[i] = 0;",
                "wait in different operations",
            ),
            (
                "y[i] = __shfl_sync(0xFFFFu, i, 0);",
                "thread (16|63) is not in the mask 0xffff of its warp's operation",
            ),
        ],
    ),
)
def test_mistakes_that_end_the_launch(tmp_path, body, text):
    """A device would hang, or compute anything; every other launch begins with the last thread."""
    with pytest.raises(LaunchError, match=rf"^emulated: .*{text}"):
        run(launch_of(tmp_path, body))


@pytest.mark.slow
def test_threads_that_returned_do_not_hold_up_a_barrier(tmp_path):
    """As on devices since sm_70: the barrier counts those that are left."""
    assert run(launch_of(tmp_path, "if (i >= 32) return; __syncthreads(); y[i] = 1;"))[:32].eq(1).all()


def test_misaligned_access_ends_the_launch(tmp_path):
    """As a device ends the context."""
    launch = launch_of(tmp_path, "*reinterpret_cast<float4*>(y + 1) = float4{};", launch=SHARED)
    take_memory_faults()  # of other tests
    run(launch)
    (fault,) = take_memory_faults()
    assert fault.kind == "misaligned"
    assert re.search(r"thread 0 of block \(0, 0, 0\): a misaligned access", fault.text)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ('asm("{ .reg .pred p; }");', r"inline PTX that is not a plain instruction: \{ \.reg \.pred p"),
        ('asm("mov.u32 %0, %%laneid;" : "=r"(n));', "inline PTX with the operand `%%laneid`"),
        (
            'asm("tanh.approx.f32 %0, %1;" : "=f"(y[0]) : "f"(x[0]));',
            "host's compiler says: .*tanh_approx_f32",
        ),
        ("y[i] = undeclared;", "host's compiler says: .*written.cu:4.*undeclared"),
    ],
)
def test_what_is_not_emulated(tmp_path, body, text):
    """One line that names the place or the instruction."""
    with pytest.raises(LaunchError, match=rf"^not emulated: .*{text}"):
        launch_of(tmp_path, body)
