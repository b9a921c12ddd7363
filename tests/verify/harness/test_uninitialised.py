"""Memory that a launch takes is never what an earlier one left."""

import pytest
import torch

from pipeline.verify.harness.conventions.outputs_given import Poisoned

POISON = 0x7FFC


def output(dtype=torch.float32):
    """An output as the judge poisons it."""
    return torch.full((8,), POISON, dtype=torch.int16).view(dtype)


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
def test_what_is_taken_holds_the_poison(take):
    """Every way to take memory without values, in any type."""
    like = torch.zeros(6)
    with Poisoned([output()]):
        made = take(like)
    words = made.as_strided((made.numel(),), (1,)).view(torch.int16)
    assert words.eq(POISON).all()


def test_values_stay():
    """Tensors that have values keep them, and nothing is filled afterwards."""
    with Poisoned([output()]):
        zeros = torch.zeros(4)
        copy = torch.ones(3).clone()
    assert zeros.eq(0).all()
    assert copy.eq(1).all()


def test_outputs_without_elements_leave_all_as_it_is():
    """There is no pattern to take over."""
    with Poisoned([torch.empty(0)]):
        assert torch.empty(4).shape == (4,)
