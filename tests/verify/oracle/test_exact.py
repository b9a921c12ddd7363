"""Integers whose sums are exact: equal bits in every order, and nothing else passes."""

import pytest
import torch

from pipeline.records.configuration.kernel import Tensor
from pipeline.records.planning.problem import Problem
from pipeline.verify.oracle.exact import exact_expectation, integer_inputs, significand
from pipeline.verify.oracle.tolerance import deviation


def problem(element: str, k: int) -> Problem:
    """A product of matrices."""
    return Problem(
        kernel="matmul",
        dimensions={"M": 8, "N": 6, "K": k},
        tensors={
            "a": Tensor(role="input", shape=("M", "K"), dtype=element),
            "b": Tensor(role="input", shape=("K", "N"), dtype=element),
            "c": Tensor(role="output", shape=("M", "N"), dtype=element),
        },
        scalars={},
        attributes={},
        element=element,
    )


@pytest.mark.parametrize("k", [1, 16, 1000, 8192])
@pytest.mark.parametrize("element", ["float32", "float16", "bfloat16"])
def test_products_are_exact(element: str, k: int) -> None:
    """Any order of summation gives the reference; one unit more does not pass."""
    inputs = integer_inputs(problem(element, k), terms=k, seed=3)
    a, b = inputs["a"].double(), inputs["b"].double()
    assert a.abs().max() > 0
    assert a.abs().max() <= 64
    expected = exact_expectation(a @ b, a.abs() @ b.abs(), output=element, accumulate="float32")
    assert expected is not None
    dtype = getattr(torch, element)
    total = torch.zeros(8, 6)
    for x, y in zip(
        inputs["a"].float().flip(1).unbind(1), inputs["b"].float().flip(0).unbind(0), strict=True
    ):
        total = total + x[:, None] * y
    assert deviation(total.to(dtype), expected).share == 0
    wrong = (a @ b).to(dtype)
    wrong[2, 3] += 1
    assert not deviation(wrong, expected).passed


def test_inputs_come_from_the_seed() -> None:
    """Equal seeds give equal inputs, others do not."""
    first, again, other = (integer_inputs(problem("float32", 64), terms=64, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first["a"], again["a"])
    assert not torch.equal(first["a"], other["a"])


def test_nothing_is_promised_where_sums_do_not_fit() -> None:
    """A sum beyond the accumulation type, or one that is not whole, is left to the other oracle."""
    large = torch.full((2, 2), 2.0**24, dtype=torch.float64)
    assert exact_expectation(large, large, output="float32", accumulate="float32") is None
    half = torch.full((2, 2), 0.5, dtype=torch.float64)
    assert exact_expectation(half, half, output="float32", accumulate="float32") is None


def test_dropped_terms_and_rounded_sums_fail() -> None:
    """A missing product, and a sum in a type that cannot hold it."""
    inputs = integer_inputs(problem("float32", 4096), terms=4096, seed=1)
    a, b = inputs["a"].double(), inputs["b"].double()
    expected = exact_expectation(a @ b, a.abs() @ b.abs(), output="float32", accumulate="float32")
    assert expected is not None
    assert not deviation((a[:, :-1] @ b[:-1]).float(), expected).passed
    assert not deviation((a @ b).bfloat16().float(), expected).passed


def test_significands() -> None:
    """IEEE 754, and value bits of integers."""
    found = [significand(dtype) for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int8)]
    assert found == [24, 11, 8, 7]
