"""What shared objects import past PyTorch's dispatcher."""

import subprocess
from pathlib import Path

import pytest

from pipeline.verify.harness.observers.native_code import direct_calls
from tests.verify.harness.candidate_process import answer_of
from tests.verify.harness.in_a_child import Answer, own_code

SOURCE = """
namespace at { struct Tensor; namespace native { void softmax_cpu(const Tensor&); }
namespace cpu { void _softmax(const Tensor&, long, bool); } void add(const Tensor&); }
extern "C" void cblas_sgemm(int); extern "C" void my_gemm(int);
namespace mine { void native(int); }
void f(const at::Tensor& x) { BODY }
"""


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("at::native::softmax_cpu(x); at::cpu::_softmax(x, 1, true);", {"softmax_cpu", "_softmax"}),
        ("cblas_sgemm(1);", {"cblas_sgemm"}),
        ("at::add(x); my_gemm(1); mine::native(2);", set()),
    ],
)
def test_imported_functions_are_named(tmp_path: Path, body: str, found: set[str]) -> None:
    """The dispatcher's own functions are seen when they are called; these are not."""
    (tmp_path / "own.cpp").write_text(SOURCE.replace("BODY", body))
    command = ["g++", "-shared", "-fPIC", "-Wl,--unresolved-symbols=ignore-all", "own.cpp", "-o", "own.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    names = direct_calls(str(tmp_path / "own.so"))
    assert {name.rpartition("::")[2] for name in names} == found


def test_what_is_no_library_has_none(tmp_path: Path) -> None:
    """Text, a cut file, nothing at all."""
    (tmp_path / "text.so").write_text("no library")
    (tmp_path / "cut.so").write_bytes(Path("/proc/self/exe").read_bytes()[:100])
    for name in ("text.so", "cut.so", "absent.so"):
        assert direct_calls(str(tmp_path / name)) == ()


@pytest.mark.slow
def test_libraries_of_packages_are_not_its_own(tmp_path: Path) -> None:
    """A process that has Python, NumPy, PyTorch and Triton has mapped nothing else."""
    assert answer_of(own_code, tmp_path, Answer).items == ()
