"""Memory that a launch takes is never what an earlier one left."""

import pytest
import torch

from pipeline.verify.harness.observers.allocations import GuardedAllocations
from pipeline.verify.harness.observers.data_flow import DataFlow
from pipeline.verify.harness.observers.torch_operators import TorchOperators

POISON = 0x7FFC


@pytest.fixture
def watch():
    """What watches the operators of a call, in which memory holds the poison of the outputs."""
    allocations = GuardedAllocations()
    allocations.next_call(POISON)
    return TorchOperators(DataFlow(), allocations).watch()


@pytest.mark.parametrize(
    "take",
    [
        lambda like: torch.empty(3, 5),
        torch.empty_like,
        lambda like: like.new_empty(7),
        lambda like: torch.empty_strided((2, 3), (4, 1)),
        lambda like: torch.empty(3, dtype=torch.bfloat16),
    ],
)
def test_what_is_taken_holds_the_poison(watch, take):
    """Every way to take memory without values, in any type."""
    like = torch.zeros(6)
    with watch:
        made = take(like)
    words = made.as_strided((made.numel(),), (1,)).view(torch.int16)
    assert words.eq(POISON).all()


def test_values_stay(watch):
    """Tensors that have values keep them, and nothing is filled afterwards."""
    with watch:
        zeros = torch.zeros(4)
        copy = torch.ones(3).clone()
    assert zeros.eq(0).all()
    assert copy.eq(1).all()
