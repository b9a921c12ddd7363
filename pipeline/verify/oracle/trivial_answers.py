"""Finds trivial answers that would pass a case: then the check of that case is too weak.

In: the inputs and expected values of a case. Out: the names of the trivial answers within the bound.
Each answer is one function and one line in `ANSWERS`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import torch

from pipeline.records.record import Record
from pipeline.verify.oracle.tolerance import Expected, deviation

SAMPLE = 4096  # elements that are looked at first; an answer that fails there has failed

Answer = Callable[[Mapping[str, torch.Tensor], Expected], Iterator[tuple[str, torch.Tensor]]]
"""Inputs and one output's expected values -> named answers of the output's shape, float64."""


def trivial_answers(inputs: Mapping[str, torch.Tensor], expected: Mapping[str, Expected]) -> frozenset[str]:
    """Names of the answers that pass for every output that has elements; empty where none has any."""
    passing: list[frozenset[str]] = []
    for output in expected.values():
        if output.reference.numel():
            passing.append(frozenset(_passing(inputs, output)))
    return frozenset.intersection(*passing) if passing else frozenset()


def _passing(inputs: Mapping[str, torch.Tensor], expected: Expected) -> Iterable[str]:
    for answer in ANSWERS:
        for name, values in answer(inputs, expected):
            if _passes(values, expected):
                yield name


def _passes(values: torch.Tensor, expected: Expected) -> bool:
    dtype = getattr(torch, expected.dtype)
    step = max(values.numel() // SAMPLE, 1)
    sample = Expected(
        dtype=expected.dtype,
        reference=expected.reference.flatten()[::step],
        bound=expected.bound.flatten()[::step],
        plain=expected.plain,
        before_rounding=expected.before_rounding,
    )
    if not deviation(values.flatten()[::step].to(dtype), sample).passed:
        return False
    return deviation(values.to(dtype), expected).passed


def _zeros(_inputs: Mapping[str, torch.Tensor], expected: Expected) -> Iterator[tuple[str, torch.Tensor]]:
    yield "zeros", torch.zeros(()).expand(expected.reference.shape)


def _ones(_inputs: Mapping[str, torch.Tensor], expected: Expected) -> Iterator[tuple[str, torch.Tensor]]:
    yield "ones", torch.ones(()).expand(expected.reference.shape)


def _mean(_inputs: Mapping[str, torch.Tensor], expected: Expected) -> Iterator[tuple[str, torch.Tensor]]:
    """The mean of the output's finite values everywhere."""
    finite = expected.reference[expected.reference.isfinite()]
    if finite.numel() and expected.reference.numel() > 1:  # of one element, it is that
        yield "mean", finite.mean().expand(expected.reference.shape)


def _input(inputs: Mapping[str, torch.Tensor], expected: Expected) -> Iterator[tuple[str, torch.Tensor]]:
    """Any input of the output's shape, unchanged."""
    for name, values in inputs.items():
        if values.shape == expected.reference.shape:
            yield f"input {name}", values.to(torch.float64)


def _same_rows(_inputs: Mapping[str, torch.Tensor], expected: Expected) -> Iterator[tuple[str, torch.Tensor]]:
    """The first row in every row."""
    if expected.reference.dim() > 1 and expected.reference.shape[0] > 1:
        yield "first row", expected.reference[:1].expand(expected.reference.shape)


def _permuted(_inputs: Mapping[str, torch.Tensor], expected: Expected) -> Iterator[tuple[str, torch.Tensor]]:
    """Right rows in wrong places: each one row further, and neighbours in each other's place."""
    rows = expected.reference
    if rows.dim() and len(rows) > 1:
        yield "rows rolled", rows.roll(1, 0)
        order = torch.arange(len(rows)) ^ 1
        order[-1] = min(int(order[-1]), len(rows) - 1)
        yield "rows swapped", rows[order]


def _half(_inputs: Mapping[str, torch.Tensor], expected: Expected) -> Iterator[tuple[str, torch.Tensor]]:
    """Only the first half of the rows is computed, the rest is zero."""
    rows = expected.reference
    if rows.dim() and len(rows) > 1:
        half = rows.clone()
        half[len(rows) // 2 :] = 0
        yield "half of the rows", half


ANSWERS: tuple[Answer, ...] = (_zeros, _ones, _mean, _input, _same_rows, _permuted, _half)


class Weakness(Record, frozen=True, kw_only=True):
    """Trivial answers over all cases of one variant."""

    task: tuple[str, ...]
    """They pass every case: the gate cannot tell the kernel from them."""
    cases: tuple[str, ...]
    """They pass a case, for example where softmax has a single column: `ones: rows=5 cols=1, normal, …`."""


def summarize(answers: Mapping[str, frozenset[str]]) -> Weakness:
    """Case label -> passing answers, for all cases whose outputs have elements."""
    everywhere = frozenset.intersection(*answers.values()) if answers else frozenset()
    return Weakness(
        task=tuple(sorted(everywhere)),
        cases=tuple(
            f"{name}: {label}" for label, names in answers.items() for name in sorted(names - everywhere)
        ),
    )
