"""The arguments of a kernel's entry: numbers from the tensors of a call, and which tensors do not fit."""

import pytest
import torch

from pipeline.backends.abi import Abi
from pipeline.backends.backend import LaunchError
from pipeline.records.configuration.kernel import Tensor
from pipeline.records.planning.problem import Problem

PACKED = Problem(
    kernel="packed",
    dimensions={"rows": 4, "cols": 8},
    tensors={
        "x": Tensor(role="input", shape=("ceil_div(cols, pack)", "rows"), dtype="uint8"),
        "y": Tensor(role="output", shape=("rows", "cols"), dtype="float32"),
    },
    scalars={},
    attributes={"pack": 2},
    element="float32",
)


def test_an_axis_may_be_a_formula() -> None:
    """Dimensions come from the axes that name them, whichever tensor is first."""
    tensors = {"x": torch.empty(3, 7, dtype=torch.uint8), "y": torch.empty(7, 5)}
    assert Abi(PACKED, device="cpu").numbers(tensors) == (7, 5)


def test_an_axis_that_does_not_fit_its_formula() -> None:
    """As for other tensors: what it is, got and expected."""
    tensors = {"x": torch.empty(2, 7, dtype=torch.uint8), "y": torch.empty(7, 5)}
    with pytest.raises(LaunchError, match=r"x: got shape \[2, 7\], expected \[3, 7\]"):
        Abi(PACKED, device="cpu").numbers(tensors)
