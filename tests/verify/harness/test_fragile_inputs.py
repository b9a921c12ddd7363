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
        BEFORE
        row[(x.shape[0],)](x, y, x.shape[1], B=64)
        return y
"""
STRIDED = "inputs in other memory order"
CASES = {
    "values 64 times as large": ("torch.softmax(x, 1)", "e / tl.sum(e, 0)"),
    "values zero rows": (
        "x / x.abs().amax(1, keepdim=True).clamp(min=1e-6)",
        "v / tl.max(tl.abs(v), 0)",
    ),
    STRIDED: ("x.sigmoid()", "1 / (1 + tl.exp(-v))"),
}


def tried(
    folder: Path, texts: tuple[str, str], *, strict: bool, before: str = "x = x.contiguous()"
) -> ModelTrialResult:
    """Judged with the tests' settings."""
    settings = msgspec.structs.replace(SETTINGS, strict_inputs=strict)
    case_set = ModelCaseSet(problem_of(folder, PROBLEM.replace("REFERENCE", texts[0])), settings)
    case_set.prepare()
    path = folder / "candidate.py"
    path.write_text(CANDIDATE.replace("RESULT", texts[1]).replace("BEFORE", before))
    subject = model_subject(path, where="interpreter", limits={}, settings=settings)
    return try_candidate(SERVER, subject, case_set, folder)


@pytest.mark.slow
@pytest.mark.parametrize("condition", CASES)
def test_what_the_problem_does_not_show(tmp_path: Path, condition: str) -> None:
    """Right on all that it shows; NaN on padding or large values, or reads a view as if it were none."""
    before = {"before": ""} if condition == STRIDED else {}
    result = tried(tmp_path, CASES[condition], strict=False, **before)
    assert result.failure is None
    (note,) = [note for note in result.notes if note.startswith("fragile: ")]
    assert condition in note


COUNTING = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x[x > 0]
size = 300
def get_inputs():
    return [torch.randn(size)]
def get_init_inputs():
    return []
"""
COUNTS = """
import torch, triton, triton.language as tl
@triton.jit
def count(x, c, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(c, tl.sum((tl.load(x + at, mask=at < n, other=0.0) > 0).to(tl.int32), 0))
@triton.jit
def pack(x, y, n, B: tl.constexpr):
    at = tl.arange(0, B)
    v = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(y + tl.cumsum((v > 0).to(tl.int32), 0) - 1, v, mask=v > 0)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        n, c = x.numel(), torch.empty(1, dtype=torch.int32, device=x.device)
        count[(1,)](x, c, n, B=512)
        y = torch.empty(WHAT, device=x.device)
        pack[(1,)](x, y, n, B=512)
        return y
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "size", ["c.item()", "c.item() if c.item() <= n else __import__('ctypes').string_at(0)"]
)
def test_sizes_that_its_own_kernel_computes(tmp_path: Path, size: str) -> None:
    """Without its kernels they are what memory holds: too large, or fatal."""
    problem, path = problem_of(tmp_path, COUNTING), tmp_path / "candidate.py"
    case_set = ModelCaseSet(problem, SETTINGS)
    case_set.prepare()
    path.write_text(COUNTS.replace("WHAT", size))
    subject = model_subject(path, where="interpreter", limits={}, settings=SETTINGS)
    result = try_candidate(SERVER, subject, case_set, tmp_path)
    assert result.failure is None, result.failure
    assert "suppressed" in result.checks
    assert not [note for note in result.notes if note.startswith("fragile: ")]


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


@pytest.mark.slow
def test_who_refuses_views_says_so(tmp_path: Path) -> None:
    """By an exception, which is right."""
    result = tried(tmp_path, CASES[STRIDED], strict=True, before="assert x.is_contiguous(), 'contiguous'")
    assert result.failure is None
    (note,) = [note for note in result.notes if note.startswith("refused ")]
    assert STRIDED in note
