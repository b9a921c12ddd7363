"""CUDA sources of an extension are rewritten for the host's compiler, built, and called."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.backends.cpp.extension_builds import NotEmulatedError
from pipeline.backends.cuda.emulated_extension import for_the_host, kept_flags
from tests.paths import ROOT

LOAD = """
import json, sys, time, torch
from torch.utils import cpp_extension
from pipeline.backends.backend import MemorySpan
from pipeline.backends.cpp.extension_builds import ExtensionBuilds, stand_in_for_builds
from pipeline.backends.cuda import emulated_extension

stand_in_for_builds(
    ExtensionBuilds(time.perf_counter), device=False, emulation=emulated_extension.emulation()
)
module = cpp_extension.load("kernels", sys.argv[1], build_directory=sys.argv[2], extra_cuda_cflags=["-O3"])
spans = []
assert emulated_extension.watch(module.__file__, lambda: spans)
"""
CALLS = """
x, h = torch.randn(32, 100), torch.randn(32, 32).half()
got = module.several(x, h)
sums, first = x.sum(1), x[0].sum().reshape(1)
product = 0.5 * (h.float() @ h.float().T)
scanned, few = x.flatten()[:128].cumsum(0), x[0, :4].sum()
positive = x[0].clamp(min=0)
positive = torch.cat([positive.sort(descending=True).values, (positive > 0).sum().reshape(1)])
got[9] = torch.cat([got[9][:100].sort(descending=True).values, got[9][100:]])
expected = (sums, 2 * sums, x.relu(), 2 * h, product, first, first, scanned, few, positive, x.T)
close = [torch.allclose(*pair, atol=1e-4) for pair in zip(got, expected, strict=True)]
right = emulated_extension.take_memory_faults()
spans.append(MemorySpan(name="x", start=x.data_ptr(), size=x.nbytes, itemsize=4, guarded=True))
module.one_beyond(x, 128)
try:
    refused = module.one_beyond(x, 2048)
except RuntimeError as error:
    refused = str(error)
faults = [fault.text for fault in emulated_extension.take_memory_faults()]
print(json.dumps([close, len(right), faults, refused]))
"""
INTRINSICS = """
torch.manual_seed(0)
x, y = torch.randn(2, 256)
of_floats, of_functions, of_halves, of_integers = module.of_numbers(x, y)
wide, other = x.double(), y.double()
bits, hundred = x.view(torch.int32).double(), (100 * x).double()
exact = (wide + other, wide * other, wide / other, wide.abs().sqrt(), bits, hundred, hundred.relu())
right = {}
for number, value in enumerate(exact):
    nearest, zero, low, high = of_floats[4 * number : 4 * number + 4].double()
    if number < 5:
        expected = value.float().double()
        after = torch.nextafter(low.float(), torch.tensor(torch.inf)).double()
        tight = ((low == high) | (after == high)).all()
    else:
        expected, tight = value.round(), ((high - low) <= 1).all()
    of_zero = zero.eq(torch.where(value < 0, high, low)).all()
    bounds = (low <= value) & (value <= high)
    right[f"rounded {number}"] = bool(nearest.eq(expected).all() & bounds.all() & of_zero & tight)
saturated = of_floats[28:].double().abs()
right["saturated"] = bool((saturated[:, x.abs() > 1e-10] == 2.0**63).all())
pi = torch.pi * wide
results = (x.sin(), x.cos(), x.sin() + x.cos(), pi.sin(), pi.cos(), x.tanh(), 10**x, x.abs().rsqrt())
right["functions"] = torch.allclose(of_functions, torch.stack([each.float() for each in results]), atol=1e-5)
rows = []
for kind in (torch.half, torch.bfloat16):
    a, b = x.to(kind), y.to(kind)
    fused = a.double() * b.double() + a.double()
    rows += [a.exp2(), a.abs().log(), a.reciprocal(), b.tanh(), a.maximum(b), fused]
    rows += [a.exp2(), b.abs().log(), b.reciprocal(), a > b, torch.ones(256), a != b, b]
rows += [x.half(), x.half(), -x.bfloat16()]
right["halves"] = [torch.allclose(*each, rtol=1e-2) for each in zip(of_halves, [row.float() for row in rows])]
right["integers"] = [each & 0xFFFFFFFF for each in of_integers.tolist()]
kinds = (torch.float32, torch.float64, torch.half, torch.bfloat16, torch.int32, torch.int64)
for kind in kinds:
    few = (4 * x[:64]).round().to(kind)  # their sums are exact
    sums = few.double().sum()
    wanted = torch.stack([sums, sums, few.max().double(), few.min().double()])
    right[f"atomics {kind}"] = torch.equal(module.updated(few).double(), wanted)
of_lanes, copied = module.of_threads(z := torch.randn(4 * 128))
part = z[:64]
lanes = [part.max(), part.min(), part[:32].sum(), part[0], part[1], (part[:32] > 0).sum().float(), part[0]]
right["lanes"] = torch.allclose(of_lanes, torch.stack(lanes), atol=1e-5)
tiles = z.view(4, 32, 4).flip(1).clone()
tiles[3, :, 2:] = 0
right["copies"] = torch.equal(copied, tiles.flatten())
faults = len(emulated_extension.take_memory_faults())
module.too_early(z), module.too_early(z)
early = [fault.text for fault in emulated_extension.take_memory_faults()]
print(json.dumps([right, faults, early]))
"""
BUILD = """
import sys, time
from pathlib import Path
from torch.utils import cpp_extension
from pipeline.backends.cpp.extension_builds import Emulation, ExtensionBuilds, stand_in_for_builds

def translate(sources, folder, flags):
    target = folder / "emulated.cpp"
    target.write_text(Path(sources[0]).read_text())
    return target, []

emulation = Emulation(translate=translate, compiling=(), linking=())
stand_in_for_builds(ExtensionBuilds(time.perf_counter), device=False, emulation=emulation)
cpp_extension.load("kernels", sys.argv[1], build_directory=sys.argv[2])
"""


def body(text: str) -> str:
    """What stands after the includes."""
    return for_the_host({"source.cu": text}).partition('#line 1 "source.cu"\n')[2].rstrip("\n")


@pytest.mark.parametrize(
    ("launch", "call"),
    [
        (
            "add<<<blocks, 256>>>(x, n);",
            'launch("add", {blocks, 256}, [=](auto... given) { add(given...); }, x, n);',
        ),
        ("none<<<1, 32>>>();", 'launch("none", {1, 32}, [=](auto... given) { none(given...); });'),
        (
            "ns::add<float, (N > 4 ? 1 : 2)> <<<dim3(f(a, b)), t, n * sizeof(T), s>>> (g(x), NULL);",
            'launch("ns::add", {dim3(f(a, b)), t, n * sizeof(T), s},'
            " [=](auto... given) { ns::add<float, (N > 4 ? 1 : 2)>(given...); }, g(x), nullptr);",
        ),
    ],
)
def test_launches(launch: str, call: str) -> None:
    """With what they are configured by, the kernel as it was named, and its arguments."""
    assert body(f"if (n) {launch}") == f"if (n) emulated::{call}"


@pytest.mark.parametrize("launch", ["kernels[0]<<<1, 32>>>(x);", "this->add<<<1, 32>>>(x);"])
def test_launches_that_are_not_rewritten(launch: str) -> None:
    """The line is shown."""
    with pytest.raises(NotEmulatedError, match="what has no name: .*<<<1, 32>>>"):
        body(launch)


@pytest.mark.parametrize("text", ["x = a << b << c;", "// add<<<1, 1>>>(x)", 'puts("a<<<b>>>(c)");'])
def test_what_is_no_launch(text: str) -> None:
    """Shifts, comments and strings stay what they are."""
    assert "emulated::" not in body(text)


def test_names_of_the_device() -> None:
    """Tensors are the host's, and so are operators for them."""
    assert body("TORCH_LIBRARY_IMPL(ext, CUDA, m) {}") == "TORCH_LIBRARY_IMPL(ext, CPU, m) {}"
    assert body("x.device().type() == c10::DeviceType::CUDA;") == "x.device().type() == c10::DeviceType::CPU;"


def test_shared_memory() -> None:
    """Each array is known by its name; what has no size is the launch's dynamic memory."""
    text = body(
        "void f() {\n"
        "static __shared__ __align__(16) float a[4][8], b;\n"
        "extern __shared__ __align__(sizeof(double)) unsigned char raw[];\n"
        "__shared__ typename cub::BlockReduce<float, 32>::TempStorage temp;\n"
        "__shared__ union { float a; int b; } both;\n"
        "}"
    )
    assert [line.count("emulated::Poisoned") for line in text.splitlines()] == [0, 2, 0, 1, 1, 0]
    assert all(f'"{name}")' in text for name in ("a", "b", "temp"))
    assert "static static" not in text
    outside = body("namespace n {\nextern volatile __shared__ float raw[];\n}").splitlines()[1]
    assert (
        outside
        == "static volatile float*& raw = reinterpret_cast<volatile float*&>(emulated::machine.shared);"
    )
    assert "unsigned char* const raw = reinterpret_cast<unsigned char*>(emulated::machine.shared);" in text


def test_includes_and_lines() -> None:
    """Other headers come before the emulation, CUDA's are it, and lines stay where they were."""
    text = for_the_host(
        {"a.cu": "#include <cuda_runtime.h>\n/* of\ntwo */ #include <vector>\n__global__ void f();"}
    )
    before, _, after = text.partition('#include "extension.hpp"\n')
    assert "#include <vector>" in before
    assert "cuda_runtime" not in text
    assert after.splitlines().index("__global__ void f();") == 4  # after `#line 1`


@pytest.mark.parametrize("header", ["cublas_v2.h", "curand_kernel.h", "thrust/sort.h", "cutlass/cutlass.h"])
def test_libraries_of_a_device(header: str) -> None:
    """The header is named."""
    with pytest.raises(NotEmulatedError, match=header):
        for_the_host({"a.cu": f"#include <{header}>"})


def test_headers_on_request() -> None:
    """Names that a source may have itself are there only for those that include them."""
    none = for_the_host({"a.cu": "#include <ATen/cuda/CUDAContext.h>"})
    assert "functional.hpp" not in none
    assert "torch_device.hpp" not in none
    some = "#include <cuda/std/functional>\n#include <ATen/cuda/Atomic.cuh>\n#include <cuda_pipeline.h>"
    text = for_the_host({"a.cu": some, "b.cu": some})
    assert text.count("functional.hpp") == text.count("torch_device.hpp") == 1
    assert "cuda_pipeline.h" not in text
    with pytest.raises(NotEmulatedError, match="cuda/barrier"):
        for_the_host({"a.cu": "#include <cuda/barrier>"})


def test_flags() -> None:
    """Those that say something about the source."""
    assert kept_flags(["-O3", "-DN=4", "-gencode", "arch=compute_90", "-I", "here", "--use_fast_math"]) == [
        "-DN=4",
        "-I",
        "here",
    ]


def run(script: str, source: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own, whose builds are replaced."""
    command = [sys.executable, "-c", script, str(source), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.slow
def test_what_kernels_use(tmp_path: Path) -> None:
    """Right results without a fault; then an access beyond the end, and a block that is too large."""
    done = run(LOAD + CALLS, Path(__file__).with_name("extension_kernels.cu"), tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    close, faults_of_right, faults, refused = json.loads(done.stdout.splitlines()[-1])
    assert close == [True] * 11
    assert faults_of_right == 0
    assert len(faults) == 1
    assert faults[0].startswith("kernel 'beyond': thread 0 of block (25, 0, 0): load of 4 bytes outside")
    assert faults[0].endswith("0 bytes past the end of x (12800 bytes)")
    assert refused == "CUDA error: invalid configuration argument"


@pytest.mark.slow
def test_intrinsics(tmp_path: Path) -> None:
    """And device functions of PyTorch: values as PyTorch computes them, and a copy that is read too early."""
    done = run(LOAD + INTRINSICS, Path(__file__).with_name("intrinsic_kernels.cu"), tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    right, faults, early = json.loads(done.stdout.splitlines()[-1])
    assert right.pop("integers") == [
        0x1234FF01, 0x23456788, 0x880C0FF0, 0x12345678, 34339, 2**32 - 5597, 0x80FF0301, 0,
        0x3F800001, 0x7F7FFFFF, 0, 0xFFFFFFFF, 32,
    ]  # fmt: skip
    assert right.pop("halves") == [True] * 29
    assert right == dict.fromkeys(right, True)
    assert faults == 0
    assert early
    assert all(text.startswith("kernel 'hasty': data race") for text in early)


@pytest.mark.parametrize("source", ["int f( {", "int f() { return __other(); }"])
def test_what_does_not_compile(tmp_path: Path, source: str) -> None:
    """Whoever is at fault, with the compiler's complaint."""
    file = tmp_path / "kernels.cu"
    file.write_text(f'#line 1 "kernels.cu"\n{source}\n')
    error = "DeviceUnavailable: not emulated, or no CUDA C++: kernels.cu:1:"
    assert error in run(BUILD, file, tmp_path).stderr
