"""Trivial answers that would pass are named: for the whole task, or for the case."""

import torch

from pipeline.verify.oracle.tolerance import Expected, Precision, expect
from pipeline.verify.oracle.trivial_answers import summarize, trivial_answers


def expected(reference: torch.Tensor, **changes: object) -> Expected:
    """Bound of a result in float32."""
    precision = {"output": "float32", "accumulate": "float32", "terms": 1.0} | changes
    return expect(reference.double(), reference.double(), Precision(**precision))


def test_each_trivial_answer_is_found() -> None:
    """Zeros, ones, a constant, an unchanged input, equal rows, rows in other places, half of them."""
    x = torch.randn(20, 600)
    row = torch.randn(600).expand(20, 600)
    pairs = torch.randn(10, 1, 600).expand(10, 2, 600).reshape(20, 600)
    alternating = torch.randn(2, 600).repeat(10, 1)
    half = torch.cat([x[:10], torch.zeros(10, 600)])
    # Answers of another name that are right as well.
    equal_rows = {"mean", "first row", "rows rolled", "rows swapped"}
    also = {"zeros": {"half of the rows"} | equal_rows, "ones": equal_rows, "mean": equal_rows}
    also |= {"first row": equal_rows}
    for name, reference in {
        "zeros": torch.zeros(20, 600),
        "ones": torch.ones(20, 600),
        "mean": torch.full((20, 600), 0.25),
        "input x": x,
        "first row": row,
        "rows swapped": pairs,
        "half of the rows": half,
    }.items():
        found = trivial_answers({"x": x}, {"y": expected(reference)})
        assert name in found
        assert found <= {name} | also.get(name, set())
    assert trivial_answers({}, {"y": expected(alternating)}) == frozenset()
    assert "rows rolled" in trivial_answers({}, {"y": expected(torch.ones(7))})


def test_an_honest_task_has_none() -> None:
    """Not even where one element of many differs."""
    x = torch.randn(20, 600)
    reference = x.clone()
    reference[3, 501] += 1
    assert trivial_answers({"x": x}, {"y": expected(reference)}) == frozenset()


def test_a_bound_that_is_too_wide_is_found() -> None:
    """A tolerance of a thousand lets zeros pass, and says so."""
    assert "zeros" in trivial_answers({}, {"y": expected(torch.rand(100), factor=1e9)})


def test_all_outputs_count() -> None:
    """An answer must pass for every output; outputs without elements say nothing."""
    zeros, random = expected(torch.zeros(50)), expected(torch.rand(50))
    assert "zeros" not in trivial_answers({}, {"a": zeros, "b": random})
    assert "zeros" in trivial_answers({}, {"a": zeros, "b": expected(torch.zeros(0))})
    assert trivial_answers({}, {"b": expected(torch.zeros(0))}) == frozenset()


def test_task_and_cases_are_told_apart() -> None:
    """Weak is what passes everywhere; what passes here and there is reported with its case."""
    found = summarize({"a": frozenset({"zeros", "ones"}), "b": frozenset({"zeros"})})
    assert found.task == ("zeros",)
    assert found.cases == ("ones: a",)
    assert summarize({}).task == ()
