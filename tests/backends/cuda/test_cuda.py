"""The backend cuda: what compile leaves and finds out, and what it says when something does not fit."""

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from pipeline.backends.backend import LaunchError
from pipeline.backends.cuda import Cuda, toolchain
from pipeline.backends.cuda.launch_geometry import geometry_of
from pipeline.backends.machine_code import sass
from pipeline.backends.machine_code.cubin_resources import kernel_resources
from pipeline.backends.machine_code.nvidia_tools import tools
from pipeline.plan.config.option_rules import check
from pipeline.records.configuration.kernel import LaunchFormulas
from pipeline.records.errors import ConfigError, FormulaError, ToolchainError
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import digest
from pipeline.records.results.compiled import Compiled
from tests.backends.cuda.cuda_jobs import ROOT, declared_job, written_job
from tests.backends.triton.triton_jobs import kernel

PLAIN = """
#include "scale.cuh"
extern "C" __global__ void kernel(const float* x, float* y, long long n) {
    __shared__ float still[33];
    extern __shared__ float moving[];
    still[threadIdx.x % 33] = moving[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < n) y[threadIdx.x] = scaled(still[7]) + moving[9];
}
"""
SCALE = "__device__ inline float scaled(float value) { return FACTOR * value; }\n"


def compiled(folder: Path, source: str = PLAIN, **options) -> Compiled | Failure:
    """A source of its own with its header, compiled into `out`."""
    root, out = folder / "root", folder / "out"
    root.mkdir(exist_ok=True)
    out.mkdir(exist_ok=True)
    (root / "scale.cuh").write_text(SCALE)
    return Cuda().compile(written_job(root, source, **({"FACTOR": 2} | options)), root, out)


def dumped(cubin: Path, kernel: str) -> dict[str, int]:
    """What cuobjdump says of a kernel: REG, STACK, SHARED, …"""
    command = [tools() / "cuobjdump", "--dump-resource-usage", cubin]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    line = re.search(rf"Function {kernel}:\n\s*(.*)", text)[1]
    return {name: int(value) for name, value in re.findall(r"(\w+):(\d+)", line)}


@pytest.mark.slow
@pytest.mark.parametrize("hardware", ["a100", "rtx4090", "h100", "b200"])
def test_facts_are_those_of_cuobjdump(tmp_path: Path, hardware: str):
    """Registers, stack and shared memory; the latter without what the system reserves from sm_90 on."""
    launch = LaunchFormulas(grid=(1,), block=(64,), shared_memory="4 * n")
    result = compiled(tmp_path, hardware=hardware, launch=launch)
    assert isinstance(result, Compiled), result
    cubin = tmp_path / "out" / result.artifact
    said = dumped(cubin, "kernel")
    reserved = 1024 if hardware in ("h100", "b200") else 0
    facts = result.facts
    assert (facts.registers, facts.local_memory) == (said["REG"], said["STACK"])
    assert facts.shared_memory == said["SHARED"] - reserved + 256
    assert (facts.barriers, facts.threads_per_block, facts.spills) == (1, 64, 0)
    assert facts.instructions == sass.count_text(sass.disassemble(cubin))
    assert facts.resident_blocks is not None and 0 < facts.occupancy_bound <= 1
    assert result.grid == (1, 1, 1)
    assert kernel_resources(cubin.read_bytes())["kernel"].parameters == (8, 8, 8)


def test_local_memory_and_spills(tmp_path: Path):
    """An array that is indexed at run time is local memory but no spill; too many live values are both."""
    source = """
    extern "C" __global__ void kernel(const float* x, float* y, long long n) {
        float kept[64];
        for (int i = 0; i < 64; ++i) kept[static_cast<int>(x[i]) % 64] = x[i];
        y[threadIdx.x] = kept[n % 64];
    }
    """
    result = compiled(tmp_path, source)
    assert dumped(tmp_path / "out" / result.artifact, "kernel")["STACK"] == 256
    assert (result.facts.local_memory, result.facts.spills) == (256, 0)
    narrow = "__launch_bounds__(1024) kernel(const float* x, float* y, long long n) {\n    float v[96];"
    source = f"""
    extern "C" __global__ void {narrow}
    #pragma unroll
        for (int i = 0; i < 96; ++i) v[i] = x[i * n + threadIdx.x];
        __syncthreads();
    #pragma unroll
        for (int i = 0; i < 96; ++i) y[i * n + threadIdx.x] = v[i] * v[(i * 7) % 96];
    }}
    """
    facts = compiled(tmp_path, source).facts
    assert facts.spills > 0
    assert facts.local_memory >= 96
    assert facts.instructions["local"] > 0


def test_what_is_kept(tmp_path: Path):
    """Cubin with line numbers, PTX, log and the sources with what they include; paths start at the root."""
    result = compiled(tmp_path)
    assert set(result.files) == {
        *("kernel.cubin", "kernel.ptx", "log.txt", "sources/written.cu", "sources/scale.cuh")
    }
    out = tmp_path / "out"
    assert b".visible .entry kernel(" in (out / "kernel.ptx").read_bytes()
    assert "Compiling entry function 'kernel' for 'sm_90'" in (out / "log.txt").read_text()
    lines = subprocess.run(
        [tools() / "nvdisasm", "-gi", "-c", out / "kernel.cubin"], capture_output=True, text=True, check=True
    ).stdout
    assert re.search(r'//## File ".*written.cu", line \d+', lines)


def test_equal_sources_give_equal_binaries(tmp_path: Path):
    """The digest says whether verdicts and measurements still hold."""
    first, other = tmp_path / "first", tmp_path / "another one"
    for folder in (first, other):
        folder.mkdir()
    found = compiled(first)
    for name in ("written.cu", "scale.cuh"):
        os.utime(first / "root" / name, (1, 1))  # line tables keep the second in which a source was written
    assert compiled(other).artifact_digest == found.artifact_digest
    assert compiled(other, FACTOR=3).artifact_digest != found.artifact_digest
    assert compiled(other, hardware="b200").artifact_digest != found.artifact_digest


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (PLAIN.replace("still[7]", "stil[7]"), 'written.cu(8): error: identifier "stil" is undefined'),
        (
            PLAIN.replace("scale.cuh", "none.cuh"),
            'written.cu(2): catastrophic error: cannot open source file "none',
        ),
        (PLAIN.replace("[33]", "[99999]"), "ptxas error : Entry function 'kernel' uses too much shared data"),
        (PLAIN.replace("void kernel", "void other"), '"C" __global__ kernel; it defines other'),
        (PLAIN.replace('extern "C" ', ""), '"C" __global__ kernel; it defines _Z6kernelPKfPfx'),
        (
            PLAIN.replace("long long n", "int n"),
            "takes 3 parameters of 8, 8, 4 bytes, expected 3 of 8: x, y, n",
        ),
        (
            PLAIN.replace("const float* x, ", "").replace("x[", "y["),
            "kernel takes 2 parameters of 8, 8 bytes, expected 3 of 8: x, y, n",
        ),
    ],
)
def test_errors_of_the_source(tmp_path: Path, source: str, text: str):
    """The first error is the reason, and the log is kept."""
    result = compiled(tmp_path, source)
    assert isinstance(result, Failure)
    assert (result.outcome, result.log) == (Outcome.COMPILE_ERROR, "log.txt")
    assert text in result.reason
    assert (tmp_path / "out" / "log.txt").is_file()


@pytest.mark.parametrize(
    ("launch", "text"),
    [
        (LaunchFormulas(grid=(1,), block=(2048,)), "threads of a block: got 2048, sm_90 has 1024"),
        (
            LaunchFormulas(grid=(1,), block=(64,), shared_memory=240000),
            "shared memory: got 240144, sm_90 has 232448",
        ),
        (LaunchFormulas(grid=(1,), block=("n - 64",)), "threads of a block: got 0, expected at least 1"),
    ],
)
def test_launches_that_the_driver_would_refuse(tmp_path: Path, launch: LaunchFormulas, text: str):
    """Known without a driver."""
    result = compiled(tmp_path, launch=launch)
    assert isinstance(result, Failure)
    assert (result.outcome, result.reason) == (Outcome.LAUNCH_ERROR, text)


def test_sources_are_followed(tmp_path: Path):
    """Includes of includes, up to the repository's border."""
    files = Cuda().sources(kernel("matmul").implementations["cuda"], ROOT)
    names = [path.relative_to(ROOT).as_posix() for path in files]
    folder = "kernels/matmul"
    assert names == [
        *(f"{folder}/matmul.cu", f"{folder}/warp_tile.cuh", f"{folder}/copy.cuh", "kernels/element.cuh")
    ]


def test_toolkit_headers_are_found(tmp_path: Path):
    """Where the extra `cuda-headers` is installed."""
    source = PLAIN.replace(
        '#include "scale.cuh"', '#include <cuda_fp16.h>\n#include <mma.h>\n#include "scale.cuh"'
    )
    assert isinstance(compiled(tmp_path, source), Compiled)


def test_geometry_on_other_dimensions():
    """Formulas know tunables, dimensions, limits and itemsize; axes that are not given are 1."""
    job = declared_job("softmax", ONLINE=False, ROWS=4, WARPS=8)
    found = geometry_of(job, {"rows": 9, "cols": 3000})
    assert (found.grid, found.block, found.threads) == ((3, 1, 1), (1024, 1, 1), 1024)
    assert found.shared_memory == 4 * 4 * 4096  # 3000 columns are two rounds of 256 threads and 8 elements
    assert geometry_of(job, {"rows": 0, "cols": 3}).is_empty


@pytest.mark.parametrize(
    ("shared", "text"),
    [
        ("n / 3", r"`n / 3`: expected a whole number of at least 0, got 21.3333"),
        ("0 - n", r"`0 - n`: expected a whole number of at least 0, got -64"),
        ("m", r"`m`: unknown name 'm' \(known: .*\bitemsize\b"),
    ],
)
def test_wrong_formulas(tmp_path: Path, shared: str, text: str):
    """A line that names the formula."""
    job = written_job(tmp_path, PLAIN, launch=LaunchFormulas(grid=(1,), block=(64,), shared_memory=shared))
    with pytest.raises(FormulaError, match=text):
        geometry_of(job, {"n": 64})


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"launch": None}, r"implementations.cuda: missing key 'launch', which backend: cuda needs"),
        ({"backend": "triton"}, r"implementations.cuda: backend: triton takes no 'launch'"),
        ({"launch": LaunchFormulas(grid=(), block=(1,))}, r"cuda.launch.grid: expected 1 to 3 axes, got 0"),
        (
            {"launch": LaunchFormulas(grid=(1,), block=("n (",))},
            r"cuda.launch.block\[0\]: `n \(`: not an expression",
        ),
    ],
)
def test_wrong_declarations(changes: dict, text: str):
    """One line that names the file and the key."""
    softmax = kernel("softmax")
    changed = msgspec.structs.replace(softmax.implementations["cuda"], **changes)
    wrong = msgspec.structs.replace(softmax, implementations={"cuda": changed})
    with pytest.raises(ConfigError, match=text):
        check(wrong, "softmax", "conf/kernel/softmax.yaml", ROOT)


def test_launch_is_part_of_the_identity():
    """Another geometry is another artifact, though the source is the same."""
    declared = kernel("softmax").implementations["cuda"]
    other = msgspec.structs.replace(declared, launch=msgspec.structs.replace(declared.launch, grid=("rows",)))
    assert declared.called != other.called
    assert digest(declared.called) != digest(other.called)


@pytest.fixture
def asked_anew():
    """Versions are asked for once a process."""
    toolchain.versions.cache_clear()
    yield
    toolchain.versions.cache_clear()


@pytest.mark.usefixtures("asked_anew")
def test_a_package_of_another_major_version(monkeypatch):
    """Named with what is expected, before anything of it is used."""
    real = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: "0.3.2" if name == "cuda-core" else real(name)
    )
    with pytest.raises(ToolchainError, match=r"cuda-core: got 0.3.2, expected a version 1.x: python -m pip"):
        toolchain.versions()


@pytest.mark.usefixtures("asked_anew")
def test_toolchain_imports_nothing():
    """Versions of all that decides a cubin, without cuda-core, NVRTC or torch."""
    script = (
        "import sys\nfrom pipeline.backends.registry import backend\n"
        "from pipeline.records.configuration.hardware import Target\n"
        "found = backend('cuda').toolchain(Target(kind='cuda', architecture='sm_90', limits={}))\n"
        "assert {'cuda-core', 'cuda-bindings', 'nvidia-cuda-nvrtc'} <= set(found), found\n"
        "loaded = {'cuda.core', 'cuda.bindings', 'torch', 'triton'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


@pytest.mark.usefixtures("asked_anew")
def test_a_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch):
    """With the command that brings it."""
    version = importlib.metadata.version

    def without(package: str) -> str:
        if package == "nvidia-cuda-nvrtc":
            raise importlib.metadata.PackageNotFoundError(package)
        return version(package)

    monkeypatch.setattr(importlib.metadata, "version", without)
    with pytest.raises(
        ToolchainError, match=r"^the backend cuda needs nvidia-cuda-nvrtc: python -m pip install"
    ):
        Cuda().toolchain(declared_job("softmax").target)


def test_cuda_core_that_cannot_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The same where it is there and broken."""
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    monkeypatch.delitem(sys.modules, "pipeline.backends.cuda.nvrtc", raising=False)
    with pytest.raises(
        ToolchainError, match=r"^the backend cuda cannot import cuda-core .*: python -m pip install"
    ):
        compiled(tmp_path)


def test_no_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A launch without a GPU is refused, unless this process emulates."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    result = compiled(tmp_path)
    with pytest.raises(LaunchError, match=r"^no cuda device here$"):
        Cuda().load(written_job(tmp_path / "root", PLAIN, FACTOR=2), result, ROOT, tmp_path / "out")


def test_kernels_of_a_cubin(tmp_path: Path):
    """Their names, whatever else it holds."""
    other = 'extern "C" __global__ void another(float* y) { y[0] = 1; }\n'
    result = compiled(tmp_path, PLAIN + other)
    found = kernel_resources((tmp_path / "out" / result.artifact).read_bytes())
    assert sorted(found) == ["another", "kernel"]
