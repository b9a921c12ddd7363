"""What a problem does not show: a note by default, the outcome where inputs are strict."""

from pathlib import Path

import msgspec
import pytest

from pipeline.records.outcome import Outcome
from pipeline.verify.harness.model_cases import ModelCaseSet
from pipeline.verify.harness.model_trial import ModelTrialResult, model_subject, try_candidate
from tests.verify.harness.candidate_process import SERVER
from tests.verify.harness.problems import SETTINGS, problem_of

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return REFERENCE
rows, columns = 12, 40
def get_inputs():
    return [torch.randn(rows, columns)]
def get_init_inputs():
    return []
"""
CANDIDATE = """
import torch, triton, triton.language as tl
@triton.jit
def row(x, y, n, B: tl.constexpr):
    at = tl.arange(0, B)
    place = tl.program_id(0) * n + at
    v = tl.load(x + place, mask=at < n, other=0.0)
    e = tl.where(at < n, tl.exp(v), 0.0)
    tl.store(y + place, RESULT, mask=at < n)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        row[(x.shape[0],)](x, y, x.shape[1], B=64)
        return y
"""
CASES = {
    "values 64 times as large": ("torch.softmax(x, 1)", "e / tl.sum(e, 0)"),
    "values zero rows": (
        "x / x.abs().amax(1, keepdim=True).clamp(min=1e-6)",
        "v / tl.max(tl.abs(v), 0)",
    ),
}


def tried(folder: Path, texts: tuple[str, str], *, strict: bool) -> ModelTrialResult:
    """Judged with the tests' settings."""
    settings = msgspec.structs.replace(SETTINGS, strict_inputs=strict)
    case_set = ModelCaseSet(problem_of(folder, PROBLEM.replace("REFERENCE", texts[0])), settings)
    case_set.prepare()
    path = folder / "candidate.py"
    path.write_text(CANDIDATE.replace("RESULT", texts[1]))
    subject = model_subject(path, where="interpreter", limits={}, settings=settings)
    return try_candidate(SERVER, subject, case_set, folder)


@pytest.mark.slow
@pytest.mark.parametrize("condition", CASES)
def test_what_the_problem_does_not_show(tmp_path: Path, condition: str) -> None:
    """Right on all that it shows, NaN on padding or on large values."""
    result = tried(tmp_path, CASES[condition], strict=False)
    assert result.failure is None
    (note,) = [note for note in result.notes if note.startswith("fragile: ")]
    assert condition in note


@pytest.mark.slow
def test_where_inputs_are_strict(tmp_path: Path) -> None:
    """The same is an outcome."""
    condition = "values 64 times as large"
    failure = tried(tmp_path, CASES[condition], strict=True).failure
    assert failure is not None and failure.outcome is Outcome.WRONG_VALUE
    assert condition in failure.reason


@pytest.mark.slow
def test_a_stable_one_has_no_note(tmp_path: Path) -> None:
    """Nothing is said of what is right there as well."""
    stable = "tl.where(at < n, tl.exp(v - tl.max(tl.where(at < n, v, float('-inf')), 0)), 0.0)"
    texts = ("torch.softmax(x, 1)", f"{stable} / tl.sum({stable}, 0)")
    result = tried(tmp_path, texts, strict=True)
    assert result.failure is None
    assert not [note for note in result.notes if note.startswith("fragile: ")]
