"""Native code of candidates: ctypes, extensions, libraries."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.verify.harness.messages import Answer, CallReply, ReadyReply, RefusedReply
from pipeline.verify.harness.observers.native_calls import launches, origin_of
from tests.verify.harness.candidate_process import RUNS_BODIES, CandidateProcess, body

BUILD = f'''
import ctypes, pathlib, subprocess, torch
SOURCE = r"""
#include <cstring>
extern "C" void twice(const float* x, float* y, long n) {{ for (long i = 0; i < n; ++i) y[i] = 2 * x[i]; }}
extern "C" void moved(const float* x, float* y, long n) {{ memcpy(y, x, n * 4); }}
extern "C" float beyond(float* y, long n) {{ y[n] = 1; return 1.5f; }}
"""
folder = pathlib.Path.cwd()
(folder / "own.cpp").write_text(SOURCE)
subprocess.run(["g++", "-O1", "-shared", "-fPIC", "own.cpp", "-o", "libown.so"], cwd=folder, check=True)
library = ctypes.CDLL(str(folder / "libown.so"))
library.beyond.restype = ctypes.c_float
{RUNS_BODIES}
'''
X = torch.linspace(-3, 3, 100)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CandidateProcess]:
    """One process with the library built and loaded."""
    with CandidateProcess(BUILD, tmp_path_factory.mktemp("shared"), where="host") as talk:
        assert isinstance(talk.loaded, ReadyReply), talk.loaded
        assert isinstance(talk.construct(), ReadyReply)
        yield talk


def call(talk: CandidateProcess, lines: str, **options: object) -> CallReply:
    """One call with these lines between the allocation of the output and its return."""
    forward = f"y = torch.empty_like(x)\nn = ctypes.c_long(x.numel())\n{lines}\nreturn y"
    done = talk.call(body(forward), X, **options)
    assert isinstance(done, CallReply), done
    return done


@pytest.mark.parametrize(
    ("arguments", "factor"),
    [
        ("library.twice(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), n)", 2),
        ("library['twice'](ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), n)", 2),
        (
            "p = ctypes.POINTER(ctypes.c_float)\n"
            "library.moved(x.numpy().ctypes.data_as(p), y.numpy().ctypes.data_as(p), n)",
            1,
        ),
    ],
)
def test_function_of_a_library_is_a_launch(shared: CandidateProcess, arguments: str, factor: int) -> None:
    """Whatever its pointers are wrapped in; one that only copies is marked."""
    done = call(shared, arguments)
    assert torch.equal(shared.value(done.outputs[0]), X * factor)
    (launch,) = done.observed.launches
    assert (launch.kind, launch.count, launch.copies) == ("ctypes", 1, factor == 1)
    assert done.observed.operations == ()
    assert [Path(path).name for path in done.observed.native] == ["libown.so"]


def test_launch_is_left_out_and_guards_hold(shared: CandidateProcess) -> None:
    """Suppressed calls do nothing; C code that writes past the end is caught."""
    twice = "library.twice(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), n)"
    lines = f"{twice}\nassert library.beyond(ctypes.c_void_p(y.data_ptr()), n) == 1.5"
    first = call(shared, lines)
    assert "past its end" in first.observed.out_of_bounds[0]
    second = call(shared, lines, suppress=True)
    assert second.outputs[0].unwritten == X.numel()
    assert second.observed.out_of_bounds == ()


def test_a_library_that_is_called_like_a_driver(shared: CandidateProcess) -> None:
    """It is the candidate's own nevertheless."""
    lines = (
        "driver = folder / 'libnvidia-ml.so.1'\n"
        "driver.exists() or driver.hardlink_to(folder / 'libown.so')\n"
        "ctypes.CDLL(str(driver)).twice(*(ctypes.c_void_p(each.data_ptr()) for each in (x, y)), n)"
    )
    done = call(shared, lines)
    assert [(each.kind, each.count, each.copies) for each in done.observed.launches] == [("ctypes", 1, False)]


@pytest.mark.parametrize(
    ("library", "origin"),
    [
        (None, "c"),
        ("libc.so.6", "c"),
        ("libcuda.so.1", "c"),
        ("libnvidia-ml.so.1", "c"),
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "c"),
        ("libcublas.so.13", "libcublas.so.13"),
        ("/somewhere/libcuda.so.1", "own"),
        ("/somewhere/libm.so.6", "own"),
    ],
)
def test_whose_a_library_is(library: str | None, origin: str) -> None:
    """Drivers compute nothing, and PyTorch asks NVML for devices; a library that may compute has its name."""
    assert origin_of(library) == origin


def test_who_launches_through_a_driver_launches() -> None:
    """All other functions of it are none of the candidate's work."""
    assert (
        launches("cuLaunchKernel") and launches("hipModuleLaunchKernel") and launches("cudaLaunchKernelExC")
    )
    assert not launches("nvmlInit") and not launches("cuMemAlloc_v2")


def test_library_that_computes_is_an_operation(shared: CandidateProcess) -> None:
    """NumPy's linear algebra, through ctypes."""
    libraries = sorted((Path(np.__file__).parents[1] / "numpy.libs").glob("libscipy_openblas64*.so"))
    if not libraries:
        pytest.skip("this NumPy has no such library")
    forward = (
        f"other = ctypes.CDLL({str(libraries[0])!r})\n"
        "there, one = ctypes.c_void_p(y.copy_(x).data_ptr()), ctypes.c_long(1)\n"
        "other.scipy_cblas_sscal64_(n, ctypes.c_float(2.0), there, one)"
    )
    done = call(shared, forward)
    assert torch.equal(shared.value(done.outputs[0]), 2 * X)
    assert f"{libraries[0].name}:scipy_cblas_sscal64_" in [each.name for each in done.observed.operations]


EXTENSION = '''
import torch
from torch.utils.cpp_extension import load_inline
flags = dict(extra_cflags=["-O0"], extra_ldflags=[""])
module = load_inline(name="own", functions=["twice", "soft"], **flags, cpp_sources=r"""
#include <torch/extension.h>
#include <ATen/ops/softmax.h>
torch::Tensor twice(torch::Tensor x) {
    TORCH_CHECK(x.is_contiguous(), "must be contiguous");
    auto y = torch::empty_like(x);
    for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = 2 * x.data_ptr<float>()[i];
    return y;
}
torch::Tensor soft(torch::Tensor x) { return at::softmax(x, 0); }
""")
class ModelNew(torch.nn.Module):
    def forward(self, x, name):
        return getattr(module, name)(x)
'''


@pytest.mark.slow
def test_extension_is_built_and_watched(tmp_path: Path) -> None:
    """Its functions are launches; operators that its C++ code calls are seen; its allocations are guarded."""
    with CandidateProcess(EXTENSION, tmp_path, where="host") as talk:
        talk.construct()
        twice, left_out, soft = (
            talk.call(X, "twice"),
            talk.call(X, "twice", suppress=True),
            talk.call(X, "soft"),
        )
        for done in (twice, left_out, soft):
            assert isinstance(done, CallReply), done
    assert [(each.kind, each.name) for each in twice.observed.launches] == [("extension", "own.twice")]
    assert twice.observed.operations == ()
    assert left_out.outputs[0].unwritten == X.numel()
    assert [(each.name, each.is_output) for each in soft.observed.operations] == [("aten::_softmax", True)]
    assert twice.seconds < 1


def build(tmp_path: Path, arguments: str) -> Answer:
    """What becomes of a candidate that builds with these arguments."""
    source = "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
    with CandidateProcess(f"{source}load_inline(name='own', {arguments})", tmp_path, where="host") as talk:
        return talk.loaded


def test_source_that_does_not_compile_is_refused_as_a_build(tmp_path: Path) -> None:
    """With the compiler's first complaint."""
    arguments = "cpp_sources='int f( {', functions=[], no_implicit_headers=True"
    answer = build(tmp_path, arguments)
    assert isinstance(answer, RefusedReply), answer
    assert (answer.stage, answer.error) == ("build", "BuildError")
    assert "error" in answer.reason


def test_sources_for_the_device_are_refused_as_unavailable(tmp_path: Path) -> None:
    """There is no compiler for them here."""
    if torch.cuda.is_available():
        pytest.skip("there is a device")
    answer = build(tmp_path, "cpp_sources='', cuda_sources='__global__ void k() {}', functions=[]")
    assert isinstance(answer, RefusedReply), answer
    assert answer.error == "DeviceUnavailable"
