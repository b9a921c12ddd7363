"""Indices are right by what they select: of equal elements, any one is.

In: the operand that an operator chose from (`argmax`, `topk`, `sort`, ...), how far rounding may lead away
from each of its elements, and indices. Out: which indices select the same values as the expected ones. Codes
of values (`bucketize`) are right by what they stand for: near the edge of two buckets, either is.
"""

from typing import Any

import torch

from pipeline.records.record import Record
from pipeline.sandbox.torch_internals import TorchDispatchMode
from pipeline.verify.torch_internals import operator_name, schema_of

RUNNING = frozenset({"cummax", "cummin"})
"""Return an index for each position, of one of the elements up to it."""
OPERATORS = RUNNING | {
    *("argmax", "argmin", "max", "min", "sort", "topk", "kthvalue", "median", "nanmedian", "mode")
}
"""Return indices of which several may be right. Those of a stable sort are not among them."""
EDGES = {"bucketize": "boundaries", "searchsorted": "sorted_sequence"}
"""Operators that return which bucket each value is in, and the argument that has the buckets' edges."""


class IndexSelection(Record, frozen=True, kw_only=True, eq=False):
    """What indices were chosen from."""

    values: torch.Tensor
    """The operand: float64, or its own integers."""
    axis: int
    """Of the operand that the indices count along."""
    shape: tuple[int, ...]
    """Of the indices, with as many axes as the operand."""
    bound: torch.Tensor | None = None
    """Largest error of each element by rounding; None for exact operands."""
    running: bool = False
    """Whether each is chosen from the elements up to its own position; one may be chosen again then."""
    any_order: bool = False
    """Whether they come in no order along the axis: `topk(sorted=False)`."""
    edges: torch.Tensor | None = None
    """Of buckets, sorted, float64: each index is the one of the value's bucket, and nothing was chosen."""


def selection_of(
    operand: torch.Tensor,
    axis: int | None,
    shape: torch.Size,
    *,
    running: bool = False,
    any_order: bool = False,
) -> IndexSelection:
    """Of indices that have the shape `shape`, with or without the axis that was reduced."""
    values = operand.detach()
    if values.is_floating_point():  # large integers are not all in float64
        values = values.to(torch.float64)
    if axis is None or not values.dim():
        return IndexSelection(values=values.reshape(-1), axis=0, shape=(shape.numel(),))
    axis %= values.dim()
    whole = tuple(shape) if len(shape) == values.dim() else (*shape[:axis], 1, *shape[axis:])
    return IndexSelection(values=values, axis=axis, shape=whole, running=running, any_order=any_order)


class OtherChoices(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode in which of equal elements another one is chosen than PyTorch chooses."""

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        """Run one operation."""
        found = other_choice(function, arguments, keywords or {})
        return function(*arguments, **(keywords or {})) if found is None else found


def other_choice(
    function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], order: torch.Generator | None = None
) -> Any | None:
    """The result of a choice made from the elements in reverse, or in a random order.

    None for other operations, and for those that define which of equal elements they choose.
    """
    name = operator_name(function).rpartition("::")[2]
    names = [each.name for each in schema_of(function).arguments]
    given = dict(zip(names, arguments, strict=False)) | keywords
    operand, of_all = given.get("self"), name.startswith("arg") and given.get("dim") is None
    if name not in OPERATORS - RUNNING or given.get("stable") or not isinstance(operand, torch.Tensor):
        return None
    if not operand.dim() or not operand.numel() or ("dim" not in names and not of_all):
        return None
    source = operand.reshape(-1) if of_all else operand
    axis = 0 if of_all else given.get("dim", -1)
    size = source.shape[axis]
    places = torch.arange(size - 1, -1, -1) if order is None else torch.randperm(size, generator=order)
    places = places.to(operand.device)
    result = function(source.index_select(axis, places), *arguments[1:], **keywords)
    if isinstance(result, torch.Tensor):
        return places[result].reshape(
            [1] * operand.dim() if of_all and given.get("keepdim") else result.shape
        )
    return result[0], places[result[1]]


def expected_order(got: torch.Tensor, expected: torch.Tensor, selection: IndexSelection) -> torch.Tensor:
    """Along the axis, where the element is that belongs at each place: indices in any order are ranked."""
    axis = selection.axis
    ranked = []
    for indices in (got, expected):
        kept = indices.to(torch.int64).clamp(0, max(selection.values.shape[axis] - 1, 0))
        by_index = kept.argsort(dim=axis, stable=True)
        chosen = selection.values.gather(axis, kept.gather(axis, by_index))
        ranked.append(by_index.gather(axis, chosen.argsort(dim=axis, stable=True)))
    mine, theirs = ranked
    return torch.empty_like(mine).scatter_(axis, theirs, mine)


def select_the_same(got: torch.Tensor, expected: torch.Tensor, selection: IndexSelection) -> torch.Tensor:
    """Where indices select values that are equal within rounding, each only once along the axis.

    Of a running choice they are among the elements up to the position, and one may come again. Where they are
    buckets: those that the value, moved by rounding, may be in.
    """
    if selection.edges is not None:
        return _may_be_in(got, selection.edges, selection)
    axis, size = selection.axis, selection.values.shape[selection.axis]
    indices = got.to(torch.int64).reshape(selection.shape)
    there = (indices >= 0) & (indices < size)
    indices = indices.clamp(0, max(size - 1, 0))
    wanted = expected.to(torch.int64).reshape(selection.shape)
    mine, theirs = selection.values.gather(axis, indices), selection.values.gather(axis, wanted)
    equal = (mine == theirs) | (mine.isnan() & theirs.isnan())
    if selection.bound is not None:
        bound = selection.bound.gather(axis, indices) + selection.bound.gather(axis, wanted)
        equal |= (mine - theirs).abs() <= bound
    if selection.running:
        positions = torch.arange(size, device=indices.device)
        there &= indices <= positions.view([-1 if each == axis else 1 for each in range(indices.dim())])
    elif selection.shape[axis] > 1:
        count = selection.shape[axis]
        ordered, places = indices.sort(axis)
        again = torch.zeros_like(equal)
        later = ordered.narrow(axis, 1, count - 1)
        again.narrow(axis, 1, count - 1).copy_(later == ordered.narrow(axis, 0, count - 1))
        equal &= ~torch.zeros_like(again).scatter(axis, places, again)
    return (equal & there).reshape(got.shape)


def _may_be_in(got: torch.Tensor, edges: torch.Tensor, selection: IndexSelection) -> torch.Tensor:
    """Which buckets a value reaches. Of one that was not rounded only the expected bucket is right."""
    if selection.bound is None:
        return torch.zeros(got.shape, dtype=torch.bool, device=got.device)
    buckets, infinity = got.to(torch.int64), edges.new_full((1,), float("inf"))
    there = (buckets >= 0) & (buckets <= len(edges))
    buckets = buckets.clamp(0, len(edges))
    values, bound = selection.values.reshape(got.shape), selection.bound.reshape(got.shape)
    reaches = values + bound >= torch.cat([-infinity, edges])[buckets]
    reaches &= values - bound <= torch.cat([edges, infinity])[buckets]
    return reaches & there & (bound > 0)
