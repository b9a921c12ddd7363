"""A kernel that the interpreter is too slow for is not at fault; one that hangs is."""

from pathlib import Path

import msgspec
import pytest

from pipeline.records.outcome import Outcome
from pipeline.verify.harness.model_cases import ModelCaseSet
from pipeline.verify.harness.model_trial import ModelTrialResult, model_subject, try_candidate
from tests.verify.harness.candidate_process import SERVER
from tests.verify.harness.problems import SCALING_KERNEL, SETTINGS, problem_of

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x
n = 64
def get_inputs():
    return [torch.randn(n)]
def get_init_inputs():
    return []
"""
CANDIDATE = (
    SCALING_KERNEL
    + """
calls = 0
class ModelNew(torch.nn.Module):
    def forward(self, x):
        global calls
        time.sleep(SECONDS if calls < 10 else 1000)
        calls += x.numel() == 64
        y = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), B=64)
        return y
"""
)
LIMIT = 8.0


def tried(folder: Path, seconds: float, factor: float = 2.0) -> ModelTrialResult:
    """A candidate that hangs after ten calls on its own sizes, each of which took so many seconds."""
    settings = msgspec.structs.replace(SETTINGS, time_limit=LIMIT)
    case_set = ModelCaseSet(problem_of(folder, PROBLEM), settings)
    case_set.prepare()
    path = folder / "candidate.py"
    path.write_text(CANDIDATE.replace("SECONDS", str(seconds)).replace("FACTOR", str(factor)))
    return try_candidate(
        SERVER, model_subject(path, where="interpreter", limits={}, settings=settings), case_set, folder
    )


@pytest.mark.slow
def test_a_slow_kernel_is_right_as_far_as_it_was_tried(tmp_path: Path) -> None:
    """Calls that all take a large part of what is allowed."""
    result = tried(tmp_path, LIMIT / 32)
    assert result.failure is None
    assert "the interpreter was too slow: not finished after" in result.untried


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seconds", "factor", "outcome"), [(0.0, 2.0, Outcome.TIMEOUT), (LIMIT / 32, 1.5, Outcome.WRONG_VALUE)]
)
def test_others_are_not_excused(tmp_path: Path, seconds: float, factor: float, outcome: Outcome) -> None:
    """One that is quick until it hangs; one that is slow and wrong."""
    result = tried(tmp_path, seconds, factor)
    assert result.failure is not None
    assert result.failure.outcome is outcome
