"""Indices that select equal values are right, others are not."""

from collections.abc import Callable

import pytest
import torch

from pipeline.verify.checks.call_observation import Passed
from pipeline.verify.checks.value import compare
from pipeline.verify.oracle.rounding.expectation import expectation

Function = Callable[[torch.Tensor], object]
TIES = torch.randint(0, 5, (6, 40), generator=torch.Generator().manual_seed(1)).float()


def passes(model: Function, candidate: Function, x: torch.Tensor = TIES) -> bool:
    """Whether all outputs of a candidate are right for a model."""
    found = candidate(x)
    several = found if isinstance(found, tuple) else (found,)
    outputs = {str(number): each for number, each in enumerate(several)}
    expected = dict(zip(outputs, expectation(model, (x,)), strict=True))
    return isinstance(compare(outputs, expected), Passed)


def last(x: torch.Tensor) -> torch.Tensor:
    """The last of the largest elements of each row."""
    return x.shape[1] - 1 - x.flip(1).argmax(1)


def sorted_backwards(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sorted, equal elements in the opposite order."""
    values, indices = torch.sort(x.flip(1), dim=1, stable=True)
    return values, x.shape[1] - 1 - indices


def running(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The running maximum, and the first of the elements of a row that are equal to it."""
    values = x.cummax(1).values
    return values, (x[:, None, :] == values[:, :, None]).int().argmax(2)


def gate(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights of the largest elements, and which they are, in no order."""
    values, indices = x.topk(5, 1, sorted=False)
    return values.softmax(1), indices


def shuffled(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The same in another order."""
    weights, indices = gate(x)
    order = torch.tensor([3, 0, 4, 2, 1])
    return weights[:, order], indices[:, order]


RIGHT: dict[str, tuple[Function, Function]] = {
    "argmax": (lambda x: x.argmax(1), last),
    "max": (lambda x: tuple(x.max(1)), lambda x: (x.max(1).values, last(x))),
    "sort": (lambda x: tuple(x.sort(1)), sorted_backwards),
    "argsort": (lambda x: x.argsort(1).to(torch.int32), lambda x: sorted_backwards(x)[1].to(torch.int32)),
    "topk": (
        lambda x: tuple(x.topk(7, 1, largest=False)),
        lambda x: tuple(each[:, :7] for each in sorted_backwards(x)),
    ),
    "cummax": (lambda x: tuple(x.cummax(1)), running),
    "mode": (
        lambda x: tuple(x.mode(1)),
        lambda x: (x.mode(1).values, (x == x.mode(1, keepdim=True).values).int().argmax(1)),
    ),
    "topk in no order": (gate, shuffled),
    "of a computed operand": (lambda x: (x @ x.T).half().argmax(1), lambda x: (x @ x.T).argmax(1)),
    "unique": (lambda x: torch.unique(x, sorted=False), lambda x: torch.unique(x).flip(0)),
}
WRONG: dict[str, tuple[Function, Function]] = {
    "argmax": (lambda x: x.argmax(1), lambda x: x.argmin(1)),
    "outside": (lambda x: x.argmax(1), lambda x: torch.full((len(x),), x.shape[1])),
    "stable sort": (lambda x: tuple(x.sort(dim=1, stable=True)), sorted_backwards),
    "one element twice": (
        lambda x: tuple(x.topk(7, 1)),
        lambda x: (x.topk(7, 1).values, x.argmax(1, keepdim=True).expand(-1, 7).contiguous()),
    ),
    "an element that comes later": (
        lambda x: tuple(x.cummax(1)),
        lambda x: (x.cummax(1).values, running(x)[1].flip(1)),
    ),
    "weights of others": (gate, lambda x: (gate(x)[0], shuffled(x)[1])),
    "sorted topk": (lambda x: tuple(x.topk(5, 1)), lambda x: tuple(each.flip(1) for each in x.topk(5, 1))),
    "sorted unique": (torch.unique, lambda x: torch.unique(x).flip(0)),
}


EDGES = torch.arange(-5.0, 6.0) / 2.0


def bucket(x: torch.Tensor) -> torch.Tensor:
    """Codes of what was rounded before."""
    return torch.bucketize(x / 3.0, EDGES).to(torch.uint8)


def test_buckets_near_an_edge() -> None:
    """Either of two is right where rounding may lead across their edge, and nothing else is."""
    x = 3.0 * EDGES.repeat(100) * (1.0 + 3e-8 * torch.randn(1100, generator=torch.Generator().manual_seed(2)))
    assert passes(bucket, lambda x: torch.bucketize(x.double() / (3.0 + 3e-7), EDGES.double()).byte(), x)
    assert passes(bucket, lambda x: torch.bucketize(x.double() / (3.0 - 3e-7), EDGES.double()).byte(), x)
    assert not passes(bucket, lambda x: bucket(x) + 1, x)


def test_buckets_elsewhere() -> None:
    """In the middle of a bucket it is the only right one; of exact values on an edge as well."""
    assert passes(bucket, bucket, TIES + 0.1)
    assert not passes(bucket, lambda x: torch.bucketize(x / 3.0 + 0.5, EDGES).byte(), TIES + 0.1)
    assert passes(lambda x: torch.bucketize(x, EDGES), lambda x: torch.bucketize(x, EDGES))
    assert not passes(lambda x: torch.bucketize(x, EDGES), lambda x: torch.bucketize(x, EDGES, right=True))


LARGE = TIES.long() + (1 << 60)
"""Values that are no indices; in float64 all are equal."""


@pytest.mark.parametrize("name", ("max", "sort", "topk"))
def test_integers(name: str) -> None:
    """Their values are not taken for indices."""
    model, candidate = RIGHT[name]
    assert passes(model, candidate, LARGE)
    assert not passes(model, lambda x: (candidate(x)[0] + 1, candidate(x)[1]), LARGE)
    assert not passes(model, lambda x: (candidate(x)[0], (candidate(x)[1] + 1) % x.shape[1]), LARGE)


def test_one_integer() -> None:
    """The largest of all, without its index."""
    assert passes(lambda x: x.max(), lambda x: x.max(), LARGE)


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    """Whatever the operator leaves open."""
    assert passes(*RIGHT[name])


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    """Other values, no element, a documented order that is not kept."""
    assert not passes(*WRONG[name])


def test_near_ties_are_no_ties() -> None:
    """Of exact operands: what is larger by one unit in the last place is the largest."""
    x = torch.ones(1, 4)
    x[0, 2] = 1.0 + 2.0**-23
    assert not passes(lambda x: x.argmax(1), lambda x: torch.zeros(1, dtype=torch.int64), x)
