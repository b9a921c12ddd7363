"""Variations of a problem's inputs: same signs, same range, and their structure preserved.

In: inputs drawn under several seeds. Out: which of them are free (continuous, without structure), and
variations of those. Every value is between the smallest and the largest that was drawn, but for `LARGER` and
`BEYOND`. Inputs that are not plainly free keep their values: a mask, a one-hot vector or a triangular matrix
stays one. Of a few numbers that are the same under every seed, all are made smaller alike; places that are
counted from 0 under every seed come in another order, and lengths that are full under every seed are shorter.
Constants, such as a mask of ones, are replaced in a variation of their own, and so are numbers among the
arguments; of indices that every seed draws anew, half become equal.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import torch

from pipeline.records.record import Record

_FLOAT32 = 4  # bytes; narrower types cannot hold what is nearer than they can tell
_TABLE = 64  # different values of a table; below, it may be a mask or a filter that somebody chose
FEWEST = 16  # elements; below, nothing can be said about structure
_NEARER = 0.75
"""To zero are a few numbers that no seed changes, such as slopes: nobody may know them beforehand."""
_WHOLE = (torch.int32, torch.int64)
_LONG = 8  # numbers, of what counts; fewer may be a choice
_SMALLEST_SCALE = 2.0**-8
PERMUTED, CONSTANT_ROWS, ZERO_ROWS = "permuted", "constant rows", "zero rows"
LARGER, BEYOND = "8 times as large", "64 times as large"
STRIDED = "in other memory order"
ONE_SIGN = "one sign"
CONCENTRATED = "half of the indices equal"
OTHER_CONSTANTS = "constant inputs replaced"
OTHER_NUMBERS = "other numbers as arguments"
NO_ZEROS = "0.5 for 0 as arguments"
OTHER_ARGUMENTS = "constructed with other numbers"
CONSTANT_EVERYWHERE = (OTHER_CONSTANTS, OTHER_NUMBERS, NO_ZEROS, OTHER_ARGUMENTS)
"""Of what no seed changes, so that a candidate could know it beforehand."""
REFUSABLE = (*CONSTANT_EVERYWHERE, CONCENTRATED, STRIDED)
"""What a candidate may refuse with an exception."""
ENDS = "ends of the range"
WITH_TIES = (CONSTANT_ROWS, ENDS, ZERO_ROWS)
"""Equal values in a row."""
NOT_SHOWN = (ZERO_ROWS, BEYOND, STRIDED, OTHER_ARGUMENTS)
"""What a problem does not show, and users meet: padding, views, normal numbers, of which none is the largest,
and layers with another slope or scale."""
_GAP = 8  # elements between rows, more for each further input, so that strides of one do not fit another
_LARGER, _FAR_BEYOND = 8.0, 64.0
_TAIL = 2.6  # largest over root mean square; below, the values may come from an interval
_ROOMY = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
_SIGN_SHARE = 0.05  # of the elements that have a sign, for it to count as shown

Tensors = Mapping[str, torch.Tensor]
Kind = Literal["few", "places", "lengths", "constant", "indices"]
"""A few numbers; places, which count from 0 along the last axis; lengths, each the size of another input; one
value everywhere, such as the ones of a mask; indices, which every seed draws anew, some of them equal."""


class Range(Record, frozen=True, kw_only=True):
    """Of the values that one free input showed."""

    low: float
    high: float
    signed: bool
    """Whether both signs were shown, each by more than a few elements."""
    integers: bool = False
    """Whether they are integers of both signs: only their signs are varied."""
    endless: bool = False
    """Whether they look drawn from a distribution without ends, in a type that holds much larger ones."""
    kind: Kind | None = None
    """Of an input that varies in its own way alone, most of them because no seed changes them."""
    sorted_rows: tuple[bool, ...] = ()
    """Of indices: which rows along the last axis ascend under every seed."""


Variation = Callable[[torch.Tensor, Range, torch.Generator], torch.Tensor]
"""A free input, its range, a generator in the same state for each input of a call -> another input."""


def free_inputs(samples: Sequence[Tensors]) -> dict[str, Range]:
    """Inputs whose values may be varied, by name, with the range they showed.

    `samples` are the inputs under at least two seeds, of equal names and shapes.
    """
    first = samples[0]
    integers = {name for name, tensor in first.items() if _signed_integers(tensor)}
    free = {
        name
        for name, tensor in first.items()
        if tensor.is_floating_point() and tensor.numel() >= FEWEST and _free(tensor, samples[1][name])
    }
    free -= _ordered(first, free)
    free |= integers
    ranges = {name: _range([sample[name] for sample in samples]) for name in first if name in free}
    return ranges | {
        name: Range(low=0.0, high=0.0, signed=False, kind=kind, sorted_rows=_sorted_rows(samples, name, kind))
        for name in first
        for kind, applies in _KINDS.items()
        if applies(samples, name)
    }


def vary(inputs: Tensors, free: Mapping[str, Range], variation: str, seed: int) -> dict[str, torch.Tensor]:
    """New inputs: free ones varied, the others as they are; equal arguments give equal bits."""
    if variation == STRIDED:
        return {name: _view(each, number) for number, (name, each) in enumerate(inputs.items())}
    varied = {}
    for name, tensor in inputs.items():
        if name not in free:
            varied[name] = tensor
            continue
        kind = free[name].kind
        if kind is not None:
            generator = torch.Generator().manual_seed(seed)
            if variation != _VARYING[kind]:
                varied[name] = tensor
            elif kind == "indices":
                varied[name] = _concentrated(tensor, free[name].sorted_rows, generator)
            else:
                varied[name] = _OF_KIND[kind](tensor, generator)
            continue
        if variation in (OTHER_CONSTANTS, CONCENTRATED):
            varied[name] = tensor
            continue
        if free[name].integers:
            varied[name] = -tensor.abs() if variation == "negative" else tensor
            continue
        # The same state for all: what two inputs of one shape have in common is kept.
        generator = torch.Generator().manual_seed(seed)
        few_digits = variation == "near ties" and tensor.element_size() < _FLOAT32
        chosen = VARIATIONS[PERMUTED if few_digits else variation]
        values = chosen(tensor.to(torch.float32), free[name], generator)
        if variation not in (LARGER, BEYOND):
            values = values.clamp_(free[name].low, free[name].high)
        kept = values.to(tensor.dtype)
        varied[name] = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype).copy_(kept)
    return varied


def other_number(number: float) -> float:
    """Another one of the same sign; who counts something counts in integers."""
    return number * _NEARER if math.isfinite(number) else number


def no_zero(number: float) -> float:
    """In a variation of its own: a dropout probability of 0 would make the model random."""
    return number or 0.5


OF_NUMBERS: dict[str, Callable[[float], float]] = {
    OTHER_NUMBERS: other_number,
    NO_ZEROS: no_zero,
    OTHER_ARGUMENTS: other_number,
}


def described(variation: str) -> str:
    """For reasons."""
    if variation in (*CONSTANT_EVERYWHERE, CONCENTRATED):
        return variation
    return f"inputs {variation}" if variation == STRIDED else f"values {variation}"


def applicable(variation: str, free: Mapping[str, Range], *, ties: bool) -> bool:
    """Whether a variation makes another input of at least one free one; `ties`: equal values may be shown."""
    if variation in (OTHER_CONSTANTS, CONCENTRATED):
        return any(each.kind is not None and _VARYING[each.kind] == variation for each in free.values())
    if variation in ("negative", ONE_SIGN):
        return any(each.signed and (variation == "negative" or not each.integers) for each in free.values())
    free = {
        name: each
        for name, each in free.items()
        if not each.integers and (each.kind is None or variation == _VARYING[each.kind])
    }
    if variation in (CONSTANT_ROWS, ENDS) and not ties:
        return False
    if variation in (LARGER, BEYOND):
        return any(each.endless for each in free.values())
    if variation == ZERO_ROWS:
        return ties and any(each.low <= 0.0 <= each.high for each in free.values())
    return bool(free)


def _view(tensor: torch.Tensor, number: int) -> torch.Tensor:
    """The same values as a view: rows of a wider tensor, or with the last two axes in the other order."""
    if tensor.dim() < 2 or 0 in tensor.stride():
        return tensor
    if number % 2 and min(tensor.shape[-2:]) > 1:
        made = tensor.new_empty((*tensor.shape[:-2], tensor.shape[-1], tensor.shape[-2])).mT
    else:
        wide = tensor.shape[-1] + _GAP * (number + 1)
        made = tensor.new_empty((*tensor.shape[:-1], wide))[..., : tensor.shape[-1]]
    return made.copy_(tensor)


def _free(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Continuous and without a structure that a variation would break."""
    values = tensor.to(torch.float64)
    if not bool(values.isfinite().all()) or 0 in tensor.stride():
        return False
    # A table that is the same for every seed may be another one too, unless few values make it up.
    count = values.numel()
    distinct = torch.unique(values).numel()
    is_table = torch.equal(values, other.to(torch.float64))
    few = distinct < min(count / 4, 64) or (is_table and distinct < _TABLE)
    # Types of few digits hold whole numbers by rounding: as many as their spacing makes likely.
    spacing = torch.finfo(tensor.dtype).eps * values.abs().clamp(1e-30, 1e30).log2().floor().exp2()
    likely = float(spacing.clamp(max=1.0).mean())
    likely = 0.01 + 2 * likely
    if is_table:  # the first row of cosines and sines is whole
        likely = max(likely, 0.25)
    whole = (values == values.round()).sum().item() > count * likely
    return not (few or whole or _sorted(values) or _normalised(values) or _square_structure(values))


def _few(samples: Sequence[Tensors], name: str) -> bool:
    """Numbers of no structure: no whole ones, which may be counts, and no weights of a mean."""
    first, *others = (sample[name] for sample in samples)
    if not first.is_floating_point() or first.element_size() == 1 or not 0 < first.numel() < FEWEST:
        return False
    values = first.to(torch.float64)
    if not bool(values.isfinite().all()) or bool((values == values.round()).any()) or _normalised(values):
        return False
    return all(each.shape == first.shape and torch.equal(each, first) for each in others)


def _count(samples: Sequence[Tensors], name: str) -> bool:
    """As positions of tokens do, or the order in which something is taken."""
    drawn = [sample[name] for sample in samples]
    if any(each.dtype not in _WHOLE or not each.dim() or each.shape[-1] < _LONG for each in drawn):
        return False
    return all(bool((each == torch.arange(each.shape[-1])).all()) for each in drawn)


def _full(samples: Sequence[Tensors], name: str) -> bool:
    """As lengths of sequences that are all as long as the longest."""
    for sample in samples:
        each = sample[name]
        if each.dtype not in _WHOLE or each.dim() != 1 or len(each) < 2 or int(each[0]) < _LONG:
            return False
        sizes = {size for other, tensor in sample.items() if other != name for size in tensor.shape}
        if not bool((each == each[0]).all()) or int(each[0]) not in sizes:
            return False
    return True


def _constant(samples: Sequence[Tensors], name: str) -> bool:
    """Ones, zeros, or another number everywhere that is no whole one, which may be a count."""
    first, *others = (sample[name] for sample in samples)
    floating = first.is_floating_point()
    if first.is_complex() or 0 in first.stride() or (floating and first.element_size() == 1):
        return False
    if not first.numel():
        return False
    value = first.flatten()[0]
    few = first.numel() < FEWEST and not floating
    if few and (first.numel() < 2 or (bool(value) and first.dtype is not torch.bool)):
        return False
    if not all(bool((each == value).all()) for each in (first, *others)):
        return False
    number = float(value)
    is_count = number == round(number) if math.isfinite(number) else True
    return (number in (0.0, 1.0) or not is_count) and not _few(samples, name)


def _indices(samples: Sequence[Tensors], name: str) -> bool:
    """Of several values, some of them equal, and not all different in each row, as of a selection."""
    drawn = [sample[name] for sample in samples]
    first = drawn[0]
    if first.dtype not in _WHOLE or first.numel() < FEWEST or 0 in first.stride():
        return False
    if all(torch.equal(each, first) for each in drawn) or any(int(each.min()) < 0 for each in drawn):
        return False
    if any(not 2 < torch.unique(each).numel() < each.numel() for each in drawn):
        return False
    rows = first.reshape(-1, first.shape[-1]).sort(dim=-1).values
    return bool((rows.diff(dim=-1) == 0).any())


def _sorted_rows(samples: Sequence[Tensors], name: str, kind: Kind) -> tuple[bool, ...]:
    if kind != "indices":
        return ()
    drawn = [sample[name].reshape(-1, sample[name].shape[-1]) for sample in samples]
    ascending = [(each.diff(dim=-1) >= 0).all(dim=-1).tolist() for each in drawn]
    return tuple(all(row) for row in zip(*ascending, strict=False))


def _concentrated(
    indices: torch.Tensor, sorted_rows: Sequence[bool], generator: torch.Generator
) -> torch.Tensor:
    """Half of them the same one; the first and the last stay, as of offsets, and what ascends still does."""
    found = indices.flatten().clone()
    chosen = torch.rand(found.shape, generator=generator) < 0.5
    chosen[0] = chosen[-1] = False
    found[chosen] = found[torch.randint(0, len(found), (1,), generator=generator)]
    rows = found.reshape(-1, indices.shape[-1])
    for row, ascends in zip(rows, sorted_rows, strict=False):
        if ascends:
            row.copy_(row.sort().values)
    return torch.empty_like(indices).copy_(rows.reshape(indices.shape))


def _replaced(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """A quarter of ones becomes 0, as in a mask; zeros become normal numbers; others come nearer to zero."""
    value, count = float(values.flatten()[0]), values.numel()
    if values.is_floating_point() and (count < FEWEST or value not in (0.0, 1.0)):
        drawn = torch.rand(count, generator=generator) if count >= FEWEST else torch.ones(count)
        other = other_number(value) or no_zero(value)
        found = other + (value - other) * (1.0 - drawn)
    elif values.is_floating_point() and value == 0.0:
        found = torch.randn(count, generator=generator)
    else:
        found = torch.full((count,), value)
        found[torch.randperm(count, generator=generator)[: max(count // 4, 1)]] = 1.0 - value
    return torch.empty_like(values).copy_(found.reshape(values.shape))


def _nearer(values: torch.Tensor, _generator: torch.Generator) -> torch.Tensor:
    return values * _NEARER


def _reordered(places: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return places[..., torch.randperm(places.shape[-1], generator=generator)]


def _shorter(lengths: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """At least half as long, one of them as long as before."""
    less = torch.randint(0, int(lengths[0]) // 2 + 1, lengths.shape, generator=generator)
    less[torch.randint(0, len(less), (1,), generator=generator)] = 0
    return lengths - less.to(lengths.dtype)


_KINDS: dict[Kind, Callable[[Sequence[Tensors], str], bool]] = {
    "few": _few,
    "places": _count,
    "lengths": _full,
    "constant": _constant,
    "indices": _indices,
}
_VARYING: dict[Kind, str] = {
    "few": PERMUTED,
    "places": PERMUTED,
    "lengths": PERMUTED,
    "constant": OTHER_CONSTANTS,
    "indices": CONCENTRATED,
}
"""The variation under which an input of a kind does."""
_OF_KIND: dict[Kind, Callable[[torch.Tensor, torch.Generator], torch.Tensor]] = {
    "few": _nearer,
    "places": _reordered,
    "lengths": _shorter,
    "constant": _replaced,
}


def _signed_integers(tensor: torch.Tensor) -> bool:
    """Many different ones of both signs: no indices, and no codes."""
    whole = tensor.dtype in (torch.int8, torch.int16, torch.int32, torch.int64) and 0 not in tensor.stride()
    if not whole or tensor.numel() < FEWEST or torch.unique(tensor).numel() < FEWEST:
        return False
    return _SIGN_SHARE < float((tensor < 0).float().mean()) < 1.0 - _SIGN_SHARE


def _sorted(values: torch.Tensor) -> bool:
    """Along any axis of some length."""
    for axis in range(values.dim()):
        if values.shape[axis] > 3:
            steps = values.diff(dim=axis)
            if bool((steps >= 0).all()) or bool((steps <= 0).all()):
                return True
    return False


def _normalised(values: torch.Tensor) -> bool:
    """Sums, sums of magnitudes or of squares are equal along an axis: probabilities, directions."""
    for axis in range(values.dim()):
        if values.shape[axis] < 2 or values.numel() == values.shape[axis]:
            continue
        for sums in (values.sum(axis), values.abs().sum(axis), values.square().sum(axis)):
            if float(sums.std()) <= 5e-3 * float(sums.abs().mean()):
                return True
    if values.dim() != 1:
        return False
    return any(abs(float(total) - 1.0) < 1e-2 for total in (values.sum(), values.square().sum()))


def _square_structure(values: torch.Tensor) -> bool:
    """Symmetric or triangular in the last two axes (zeros elsewhere count as whole numbers already)."""
    if values.dim() < 2 or values.shape[-1] != values.shape[-2] or values.shape[-1] < 2:
        return False
    return bool(torch.allclose(values, values.mT, rtol=1e-6, atol=0.0))


def _ordered(tensors: Tensors, names: set[str]) -> set[str]:
    """Inputs of one shape of which one is never above the other: bounds of something."""
    bound: set[str] = set()
    for name in names:
        for other in names - {name}:
            if tensors[name].shape != tensors[other].shape:
                continue
            # Types of 8 bits cannot be compared by themselves.
            if bool((tensors[name].to(torch.float64) <= tensors[other].to(torch.float64)).all()):
                bound |= {name, other}
    return bound


def _range(samples: Sequence[torch.Tensor]) -> Range:
    values = torch.cat([sample.to(torch.float64).flatten() for sample in samples])  # sizes may be drawn, too
    negative = float((values < 0).to(torch.float64).mean())
    size = float(values.square().mean().sqrt())
    tails = min(-float(values.min()), float(values.max())) > _TAIL * size > 0.0
    return Range(
        low=float(values.min()),
        high=float(values.max()),
        signed=_SIGN_SHARE < negative < 1.0 - _SIGN_SHARE,
        integers=not samples[0].is_floating_point(),
        endless=tails and samples[0].dtype in _ROOMY,
    )


def _permuted(values: torch.Tensor, _range: Range, generator: torch.Generator) -> torch.Tensor:
    """The same values elsewhere."""
    order = torch.randperm(values.numel(), generator=generator)
    return values.flatten()[order].reshape(values.shape)


def _scaled(values: torch.Tensor, range_: Range, generator: torch.Generator) -> torch.Tensor:
    """Each row on a smaller scale of its own, down to 1/256; far from zero, nearer to the smallest value."""
    rows = (*values.shape[:-1], 1) if values.dim() > 1 else (1,)
    factor = torch.exp2(torch.rand(rows, generator=generator) * -8.0).clamp_(min=_SMALLEST_SCALE)
    return (
        values * factor if range_.low <= 0.0 <= range_.high else range_.low + (values - range_.low) * factor
    )


def _one_sign(values: torch.Tensor, range_: Range, generator: torch.Generator) -> torch.Tensor:
    """All of one sign within each index of the first axis, where both signs were shown."""
    if not range_.signed:
        return _permuted(values, range_, generator)
    first = (values.shape[0], *(1,) * (values.dim() - 1)) if values.dim() > 1 else (1,) * values.dim()
    sign = torch.randint(0, 2, first, generator=generator) * 2.0 - 1.0
    return values.abs() * sign


def _negative(values: torch.Tensor, range_: Range, generator: torch.Generator) -> torch.Tensor:
    """All below zero, where both signs were shown."""
    return -values.abs() if range_.signed else _permuted(values, range_, generator)


def _constant_rows(values: torch.Tensor, _range: Range, _generator: torch.Generator) -> torch.Tensor:
    """One value within each index of the first axis: ties everywhere, no variance."""
    if values.dim() < 2:
        return values[:1].expand(values.shape).clone()
    rows = values.flatten(1)
    return rows[:, :1].expand(rows.shape).reshape(values.shape).clone()


def _near_ties(values: torch.Tensor, _range: Range, generator: torch.Generator) -> torch.Tensor:
    """Neighbours in a row are nearer to each other than float16, bfloat16 or tf32 can tell."""
    rows = values.reshape(-1, values.shape[-1] if values.dim() else 1)
    count = max(rows.shape[1], 1)
    steps = torch.where(torch.rand(len(rows), 1, generator=generator) < 0.5, 2.0**-9, 2.0**-12)
    order = torch.rand(rows.shape, generator=generator).argsort(1)
    return (rows[:, :1] * (1.0 - order * steps.clamp(max=0.5 / count))).reshape(values.shape)


def _ends_of_range(values: torch.Tensor, range_: Range, generator: torch.Generator) -> torch.Tensor:
    """The smallest and the largest values that were shown, among tiny ones where zero is between them."""
    chosen = torch.rand(values.shape, generator=generator)
    inner = values * 2.0**-12 if range_.low <= 0.0 <= range_.high else values
    ends = torch.where(chosen < 0.25, range_.low, range_.high)
    return torch.where(chosen < 0.5, ends.to(values.dtype), inner)


def _zero_rows(values: torch.Tensor, range_: Range, generator: torch.Generator) -> torch.Tensor:
    """Nothing but zeros at about a quarter of the first axis, as in padding; where zero is in the range."""
    if values.dim() < 2 or not range_.low <= 0.0 <= range_.high:
        return _permuted(values, range_, generator)
    order = torch.rand(len(values), generator=generator).argsort()
    kept = values.clone()
    kept[order[: len(values) // 4 or len(values) // 2]] = 0.0
    return kept


def _larger(values: torch.Tensor, range_: Range, _generator: torch.Generator) -> torch.Tensor:
    """Beyond what was shown: no normal number is the largest."""
    return values * _LARGER if range_.endless else values


def _far_beyond(values: torch.Tensor, range_: Range, _generator: torch.Generator) -> torch.Tensor:
    """Where formats may end, too."""
    return values * _FAR_BEYOND if range_.endless else values


VARIATIONS: dict[str, Variation] = {
    PERMUTED: _permuted,
    ONE_SIGN: _one_sign,
    "smaller scales": _scaled,
    "negative": _negative,
    CONSTANT_ROWS: _constant_rows,
    "near ties": _near_ties,
    ENDS: _ends_of_range,
    ZERO_ROWS: _zero_rows,
    LARGER: _larger,
    BEYOND: _far_beyond,
}
NAMES = (*VARIATIONS, CONCENTRATED, *CONSTANT_EVERYWHERE, STRIDED)
"""All of them; the last one keeps the values."""
