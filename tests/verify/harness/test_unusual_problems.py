"""Problems whose inputs and outputs are no plain tensors of one size: judged like others."""

from pathlib import Path

import msgspec
import pytest
import torch

from pipeline.records.outcome import Outcome
from pipeline.sandbox.models.model_problem import ProblemError
from pipeline.verify.harness.model_cases import ModelCaseSet, lets_pass
from pipeline.verify.harness.model_trial import ModelTrialResult
from pipeline.verify.oracle.rounding.expectation import expectation
from pipeline.verify.oracle.tolerance import deviation
from tests.verify.harness.problems import SCALING_KERNEL, SETTINGS, problem_of
from tests.verify.harness.verdicts import verdict_on

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x, *others):
        return RESULT
n = 64
def get_inputs():
    return INPUTS
def get_init_inputs():
    return []
"""
CANDIDATE = (
    SCALING_KERNEL.replace("FACTOR", "2")
    + """
def doubled(x):
    x, y = x.contiguous(), torch.empty(x.shape, dtype=x.dtype)
    double[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), B=64)
    return y
class ModelNew(torch.nn.Module):
    def forward(self, x, *others):
        return RESULT
"""
)
X = "[torch.randn(n)]"


def tried(folder: Path, result: str, inputs: str, candidate: str, *, groups: str = "") -> ModelTrialResult:
    """The verdict on `candidate`, with `groups` as further lines of the problem."""
    problem = PROBLEM.replace("RESULT", result).replace("INPUTS", inputs) + groups
    return verdict_on(folder, problem, CANDIDATE.replace("RESULT", candidate))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong", "reason"),
    [
        ("(doubled(x), (doubled(x), x))", "(doubled(x), (x,))", "returned 2 outputs, expected 3"),
        ("(doubled(x), [doubled(x), x])", "doubled(x)", "returned a tensor, expected 3 tensors"),
    ],
)
def test_nested_outputs(tmp_path: Path, right: str, wrong: str, reason: str) -> None:
    """As of an LSTM."""
    model = "(2 * x, (2 * x, x))"
    assert tried(tmp_path, model, X, right).failure is None
    failure = tried(tmp_path, model, X, wrong).failure
    assert failure is not None and failure.outcome is Outcome.WRONG_SHAPE and reason in failure.reason


@pytest.mark.slow
def test_named_outputs(tmp_path: Path) -> None:
    """In any order, under the same names."""
    model = "{'loss': (2 * x).sum(), 'values': 2 * x}"
    right = "{'values': (y := doubled(x)), 'loss': y.sum()}"
    assert tried(tmp_path, model, X, right).failure is None
    for wrong in (right.replace("loss", "losses"), "(lambda y: (y.sum(), y))(doubled(x))"):
        failure = tried(tmp_path, model, X, wrong).failure
        assert failure is not None and failure.outcome is Outcome.WRONG_SHAPE
        assert "expected a dict of loss, values" in failure.reason


def test_what_is_no_output(tmp_path: Path) -> None:
    """The problem is at fault."""
    with pytest.raises(
        ProblemError, match="returns str, expected a tensor, or tensors in a tuple, list or dict"
    ):
        tried(tmp_path, "(2 * x, 'loss')", X, "doubled(x)")


@pytest.mark.slow
def test_shapes_that_are_drawn(tmp_path: Path) -> None:
    """As of the values of a sparse matrix."""
    inputs = "[torch.randn(int(torch.randint(n - 20, n, ())))]"
    assert tried(tmp_path, "2 * x", inputs, "doubled(x)").failure is None
    failure = tried(tmp_path, "2 * x", inputs, "doubled(x)[:50]").failure
    assert failure is not None and failure.outcome is Outcome.WRONG_SHAPE


@pytest.mark.slow
def test_conjugated_inputs(tmp_path: Path) -> None:
    """What PyTorch conjugates later is in memory when a kernel reads it."""
    groups = "def get_input_groups():\n    return [[torch.randn(n, dtype=torch.complex64).conj()]]\n"
    right = "torch.view_as_complex(doubled(torch.view_as_real(x)))"
    inputs = "[torch.randn(n, dtype=torch.complex64)]"
    assert tried(tmp_path, "2 * x", inputs, right, groups=groups).failure is None


@pytest.mark.slow
def test_truth_values_at_a_tie(tmp_path: Path) -> None:
    """Rounding decides whether a mean of tenths is above one of them: PyTorch's own answer is right."""
    inputs = "[torch.randint(0, 9, (n, 16)) / 10]"
    model = "2 * x.mean(-1) > 0.8"
    assert tried(tmp_path, model, inputs, "doubled(x.mean(-1)) > 0.8").failure is None
    failure = tried(tmp_path, model, inputs, "doubled(x.mean(-1)) > 0.7").failure
    assert failure is not None and failure.outcome is Outcome.WRONG_VALUE


def test_codes_at_a_tie() -> None:
    """PyTorch's own code is right where float32 rounds a quotient to a half; a third one is not."""
    x, scale = torch.arange(1.0, 4000.0), torch.tensor(0.7)

    def codes(x: torch.Tensor) -> torch.Tensor:
        return (x * scale.to(x.dtype) * 0.5 / scale.to(x.dtype)).round().to(torch.int32)

    (expected,) = expectation(codes, (x,), samples=8)
    own = codes(x)
    exact = msgspec.structs.replace(expected, accepted=())
    assert deviation(own, exact).wrong > 0
    assert deviation(own, lets_pass(exact, own)).share <= 1.0
    assert deviation(own + 1, lets_pass(exact, own)).share > 1.0


@pytest.mark.slow
def test_statistics_that_an_instance_keeps(tmp_path: Path) -> None:
    """Which call of an instance it is decides what it returns: nobody can be judged by that."""
    model = "self.norm(x), self.norm.running_mean.clone()"
    text = PROBLEM.replace(
        "    def forward",
        "    def __init__(self):\n        super().__init__()\n"
        "        self.norm = torch.nn.BatchNorm1d(3)\n    def forward",
    )
    problem = text.replace("RESULT", model).replace("INPUTS", "[torch.randn(n, 3)]")
    with pytest.raises(ProblemError, match="keeps state: a second call .* output 1, which depends on norm"):
        ModelCaseSet(problem_of(tmp_path, problem), SETTINGS).prepare()
    problem = problem.replace("self.norm(x), self.norm.running_mean.clone()", "self.norm(x)")
    ModelCaseSet(problem_of(tmp_path, problem), SETTINGS).prepare()


@pytest.mark.slow
def test_a_model_that_changes_its_input(tmp_path: Path) -> None:
    """As a step of an optimizer: in place or not, but to no other values."""
    for right in ("x.copy_(doubled(x))", "doubled(x)"):
        assert tried(tmp_path, "x.mul_(2)", X, right).failure is None
    failure = tried(tmp_path, "x.mul_(2)", X, "x.copy_(doubled(doubled(x)))").failure
    assert failure is not None and failure.outcome is Outcome.WRONG_VALUE
    assert "input 0: holds other values than Model leaves there" in failure.reason


@pytest.mark.slow
def test_a_compiler_that_the_candidate_starts(tmp_path: Path) -> None:
    """What it printed is the reason, not that it ended with code 1."""
    problem = PROBLEM.replace("RESULT", "x").replace("INPUTS", X)
    build = "open('own.cpp', 'w').write('int f( {}'); subprocess.run(['g++', '-c', 'own.cpp'], check=True)"
    source = f"import os, subprocess, tempfile\nos.chdir(tempfile.mkdtemp()); {build}\n"
    failure = verdict_on(tmp_path, problem, source, where="host").failure
    assert failure is not None and failure.outcome is Outcome.COMPILE_ERROR
    assert failure.reason.startswith("own.cpp:1:") and "error: " in failure.reason


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "noted"), [("", True), ("\ncheck_grad = True\n", False)])
def test_a_backward_of_its_own(tmp_path: Path, groups: str, noted: bool) -> None:
    """Where gradients are not judged, a note says so."""
    backward = """
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return doubled(x)
    @staticmethod
    def backward(context, gradient):
        return doubled(gradient)
class ModelNew(torch.nn.Module):"""
    candidate = CANDIDATE.replace("\nclass ModelNew(torch.nn.Module):", backward).replace(
        "RESULT", "Twice.apply(x)"
    )
    problem = PROBLEM.replace("RESULT", "2 * x").replace("INPUTS", X) + groups
    result = verdict_on(tmp_path, problem, candidate)
    assert result.failure is None
    assert any(note.startswith("its backward was not judged") for note in result.notes) is noted
