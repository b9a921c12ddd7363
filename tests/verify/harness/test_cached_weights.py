"""Weights that a candidate's own kernel folds together and keeps: what it keeps must follow all of them."""

from pathlib import Path

import pytest

from pipeline.records.outcome import Outcome
from pipeline.verify.harness.model_trial import ModelTrialResult
from tests.verify.harness.verdicts import verdict_on

MODEL = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(40))
        self.scale = torch.nn.Parameter(torch.ones(40))
    def forward(self, x):
        return x * (self.weight * self.scale)
rows = 12
def get_inputs():
    return [torch.randn(rows, 40)]
def get_init_inputs():
    return []
"""
CANDIDATE = """
import torch, triton, triton.language as tl
@triton.jit
def product(x, w, y, n, c, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at, mask=at < n) * tl.load(w + at % c, mask=at < n)
    tl.store(y + at, v, mask=at < n)
def launch(x, w):
    y = torch.empty(x.shape)
    product[(triton.cdiv(x.numel(), 64),)](x, w, y, x.numel(), w.numel(), B=64)
    return y
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(40))
        self.scale = torch.nn.Parameter(torch.ones(40))
        self.key = self.folded = None
    def forward(self, x):
        key = KEY
        if key != self.key:
            self.key, self.folded = key, launch(self.weight.detach(), self.scale.detach())
        return launch(x.contiguous(), self.folded)
"""


def tried(folder: Path, key: str) -> ModelTrialResult:
    """The verdict on a candidate that folds its weights anew where this changes."""
    return verdict_on(folder, MODEL, CANDIDATE.replace("KEY", key))


@pytest.mark.slow
def test_that_follow(tmp_path: Path) -> None:
    """Nothing is said of what is kept while its kernels are left out."""
    result = tried(tmp_path, "(self.weight._version, self.scale._version)")
    assert result.failure is None
    assert not [note for note in result.notes if note.startswith("fragile: ")]


@pytest.mark.slow
def test_that_follow_one_of_them(tmp_path: Path) -> None:
    """A scale that changes alone, as training or loading does where the others are equal."""
    failure = tried(tmp_path, "self.weight._version").failure
    assert failure is not None and failure.outcome is Outcome.WRONG_VALUE
    assert "the weights had been changed since its last call" in failure.reason
