"""Data races between OpenMP threads of a candidate, found in every schedule and by the repeated call."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from pipeline.records.outcome import Outcome
from pipeline.verify.harness.failed_call import FailedCall
from pipeline.verify.harness.model_cases import ModelCaseSet
from pipeline.verify.harness.model_trial import ModelTrialResult, model_subject, try_candidate
from tests.paths import ROOT
from tests.verify.harness.candidate_process import SERVER
from tests.verify.harness.problems import SETTINGS, problem_of
from tests.verify.harness.test_slow_interpreter import PROBLEM

LIBRARY = '''
import ctypes, pathlib, subprocess, torch
SOURCE = """
extern "C" int omp_get_max_threads(); extern "C" void twice(const float* x, float* y, long n) {
    DECLARED
    #pragma omp parallel for
    for (long i = 0; i < n; ++i) { KEPT = 2 * x[i]; y[i] = kept; }
}
extern "C" void right(const float* x, float* y, long n) {
    #pragma omp parallel for
    for (long i = 0; i < n; ++i) y[i] = 2 * x[i];
}
"""
pathlib.Path("twice.cpp").write_text(SOURCE)
subprocess.run(["g++", "-O1", "-fopenmp", "-shared", "-fPIC", "-o", "twice.so", "twice.cpp"], check=True)
library = ctypes.CDLL("./twice.so")
def called(function, x):
    x, y = x.contiguous(), torch.empty(x.shape)
    function(*(ctypes.c_void_p(each.data_ptr()) for each in (x, y)), ctypes.c_long(x.numel()))
    return y
'''
FORWARD = """
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return called(library.twice, x)
"""
BACKWARD = """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return called(library.right, x)
    @staticmethod
    def backward(context, gradient):
        return called(library.twice, gradient)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return Twice.apply(x)
"""
REPEAT = """
import sys
from pathlib import Path
from pipeline.verify.harness.failed_call import read_failed_call
from pipeline.verify.harness.repeated_call import RepeatedCall
failure = RepeatedCall(read_failed_call(Path(sys.argv[1]))).alone()
print(None if failure is None else failure.outcome)
"""
SHARED, PRIVATE = ("float kept;", "kept"), ("", "float kept")
FEW_THREADS = ("if (omp_get_max_threads() > 4) return;", "float kept")


def tried(folder: Path, declared: str, kept: str, model: str = FORWARD) -> ModelTrialResult:
    """The candidate with its intermediate value declared before the loop, or in it."""
    settings = msgspec.structs.replace(SETTINGS, thread_counts=(2, 3))
    problem = PROBLEM + "check_grad = True\n" * (model == BACKWARD)
    case_set = ModelCaseSet(problem_of(folder, problem), settings)
    case_set.prepare()
    path = folder / "candidate.py"
    path.write_text(LIBRARY.replace("DECLARED", declared).replace("KEPT", kept) + model)
    subject = model_subject(path, where="interpreter", limits={}, settings=settings)
    result = try_candidate(SERVER, subject, case_set, folder)
    if result.failure is not None:
        FailedCall(
            problem=str(folder / "problem.py"), candidate=str(path), where="interpreter", device="cpu",
            limits={}, settings=settings, failure=result.failure, calls=result.until_failure,
        ).write(folder)  # fmt: skip
    return result


@pytest.mark.slow
def test_a_shared_variable(tmp_path: Path) -> None:
    """Named with its line; a debugger's process sees it as well."""
    failure = tried(tmp_path, *SHARED).failure
    assert failure is not None
    assert failure.outcome is Outcome.NONDETERMINISTIC
    assert "data race in twice.cpp:5" in failure.reason
    command = [sys.executable, "-c", REPEAT, str(tmp_path)]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.stdout.splitlines()[-1:] == ["nondeterministic"], ended.stderr


@pytest.mark.slow
def test_in_backward_alone(tmp_path: Path) -> None:
    """Where gradients are judged."""
    failure = tried(tmp_path, *SHARED, BACKWARD).failure
    assert failure is not None
    assert failure.outcome is Outcome.NONDETERMINISTIC
    assert "backward, instrumented build" in failure.reason


@pytest.mark.slow
@pytest.mark.parametrize("model", [FORWARD, BACKWARD])
def test_wrong_with_many_threads(tmp_path: Path, model: str) -> None:
    """No race, and fewer threads get right values."""
    failure = tried(tmp_path, *FEW_THREADS, model).failure
    assert failure is not None
    assert failure.outcome in (Outcome.UNWRITTEN_OUTPUT, Outcome.WRONG_VALUE)


@pytest.mark.slow
@pytest.mark.parametrize("model", [FORWARD, BACKWARD])
def test_a_private_variable(tmp_path: Path, model: str) -> None:
    """It has been looked at, and has none."""
    result = tried(tmp_path, *PRIVATE, model)
    assert result.failure is None
    assert "races" in result.checks
