"""How wrong may an output be? A bound per element, derived from types, reduction length and magnitudes.

In: the reference and the magnitudes that entered each output, in float64. Out: per element the largest
error that rounding can explain, and for a result the share of it that was used.

The bound is `factor * (u_out |reference| + terms u_acc magnitude) + tiny` with
- `u`: unit roundoff of the output and the accumulation type (Higham 2002, section 2.1);
- `2 operands magnitude` more where operands of products may be cut off (`TF32_UNIT`);
- `terms = min(n, 8 sqrt(n))` for n accumulated terms: n is the worst case of any order of summation
  (section 4.2), rounding errors of mixed signs grow like sqrt(n), and 8 times that does not occur by chance
  (Higham and Mary 2019, doi:10.1137/18M1226312);
- `tiny`: what flushing to zero may lose. Types with the exponent of float32 may flush subnormals as a whole
  (GPUs and `-ffast-math` do, 1e-38 is nothing), narrower ones only their smallest subnormal.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import torch

from pipeline.records.record import Record
from pipeline.verify.oracle.selection import IndexSelection, expected_order, select_the_same

_VARIED = 0.05  # standard deviation of a row's magnitudes over their mean
TF32_UNIT = 2.0**-10
"""Largest relative error of a float32 that is cut off to tf32, which has 10 explicit bits of mantissa."""
AT_ONCE = 1 << 24  # elements compared together; about ten temporary tensors of float64 take 1 GiB
_SMALLEST_HARMLESS = 1e-30  # a smallest normal number below this may be flushed to zero


Output = TypeVar("Output", torch.Tensor, torch.Tensor | None)


class Precision(Record, frozen=True, kw_only=True):
    """What decides how large rounding errors are."""

    output: str
    """Torch dtype name of the output."""
    accumulate: str
    """Torch dtype name in which terms are accumulated."""
    terms: float
    """How many terms are accumulated into one output."""
    factor: float = 1.0
    """Documented widening."""
    operands: float = 0.0
    """Largest relative error of each of two operands that are multiplied."""


class Expected(Record, frozen=True, kw_only=True, eq=False):
    """What one output should be."""

    dtype: str
    reference: torch.Tensor
    """float64, contiguous; float32 where memory is short."""
    bound: torch.Tensor
    """float64, positive and finite, same shape; float32 like the reference."""
    plain: bool
    """All references are finite and none is near the largest number of the output type."""
    spread: torch.Tensor | None = None
    """Standard deviation of each element's rounding error, where it was sampled: positive, same shape."""
    limit: float = math.inf
    """The root mean square of error / `spread` over all elements may not exceed it."""
    row_limit: torch.Tensor | None = None
    """Of each row: by which factor all its elements may be off together, in units of 1."""
    scale_limit: float = math.inf
    """The same of all elements: what is cut off to a narrow type is too small everywhere."""
    accepted: tuple[torch.Tensor, ...] = ()
    """Other right values of exact outputs, float64, same shape: any of them passes where it stands."""
    integers: tuple[torch.Tensor, ...] = ()
    """int64, same shape: the right values where float64 does not have all of them."""
    selection: IndexSelection | None = None
    """What the output's indices were chosen from: those that choose the same values pass."""
    unordered: bool = False
    """Whether the elements may come in any order."""
    anything_finite: bool = False
    """Whether the bound only asks for finite values."""
    before_rounding: bool = False
    """Whether `bound` is of the value that is rounded to `dtype`, which has few numbers: any that a value
    within the bound is rounded to is right."""

    @property
    def is_elementwise(self) -> bool:
        """Whether each element is compared by itself, and with one value."""
        if self.accepted or self.integers or self.unordered or self.selection is not None:
            return False
        return self.spread is None and self.row_limit is None and math.isinf(self.scale_limit)


def on_host(item: Any) -> Any:
    """Expected values, also in tuples and mappings, with all tensors on the host."""
    if isinstance(item, torch.Tensor):
        return item.cpu()
    if isinstance(item, tuple):
        return tuple(map(on_host, item))
    if isinstance(item, dict):
        return {name: on_host(each) for name, each in item.items()}
    if isinstance(item, Record):
        fields = {name: on_host(getattr(item, name)) for name in item.__struct_fields__}
        return msgspec.structs.replace(item, **fields)
    return item


class Deviation(Record, frozen=True, kw_only=True):
    """How far a result is from what was expected; a share of at most 1 passes."""

    share: float
    """Largest error as a share of its bound; infinite where a NaN or infinity is missing or unexpected."""
    error: float
    """Largest absolute error among finite values."""
    wrong: int
    """Elements beyond their bound."""
    total: int
    where: tuple[int, ...] | None
    """Index of the worst element; None for an output without elements."""
    overall: float = 0.0
    """Root mean square of errors in units of their spread, as a share of its limit; part of `share`."""
    row: float = 0.0
    """Largest common factor by which a row, or all, is off, as a share of its limit; part of `share`."""

    @property
    def passed(self) -> bool:
        """Whether every element is within its bound (never so for NaN)."""
        return self.share <= 1.0


def expect(reference: torch.Tensor, magnitude: torch.Tensor, precision: Precision) -> Expected:
    """Derive the bound of every element from float64 `reference` and `magnitude` of the same shape."""
    dtype = getattr(torch, precision.output)
    if not dtype.is_floating_point:
        # Integers are exact: any difference is at least 1, twice this bound.
        half = torch.full_like(reference, 0.5)
        return Expected(dtype=precision.output, reference=reference, bound=half, plain=True)
    terms = min(precision.terms, 8.0 * math.sqrt(precision.terms))
    rounding = unit_roundoff(dtype)
    accumulated = terms * unit_roundoff(getattr(torch, precision.accumulate)) * (1.0 + rounding)
    accumulated += 2.0 * precision.operands
    # A magnitude that is not finite says nothing about a finite reference: only the last rounding is left.
    bound = torch.nan_to_num(magnitude.abs(), nan=0.0, posinf=0.0).mul_(accumulated)
    bound.add_(torch.nan_to_num(reference.abs(), nan=0.0, posinf=0.0), alpha=rounding)
    bound.mul_(precision.factor).add_(tiny(dtype))
    # NaN compares false, so a reference that is not finite makes this false as well.
    plain = bool((reference.abs() + bound < torch.finfo(dtype).max).all())
    return Expected(
        dtype=precision.output, reference=reference.contiguous(), bound=bound.contiguous(), plain=plain
    )


def widened(expected: Expected, factor: float) -> Expected:
    """The same with bounds and spread `factor` times as large."""
    if factor == 1.0:
        return expected
    bound = expected.bound * factor
    plain = bool((expected.reference.abs() + bound < torch.finfo(getattr(torch, expected.dtype)).max).all())
    spread = None if expected.spread is None else expected.spread * factor
    rows = None if expected.row_limit is None else expected.row_limit * factor
    return msgspec.structs.replace(
        expected,
        bound=bound,
        plain=plain,
        spread=spread,
        row_limit=rows,
        scale_limit=expected.scale_limit * factor,
    )


def unit_roundoff(dtype: torch.dtype) -> float:
    """Largest relative error of rounding to nearest: half the distance from 1 to the next number."""
    return float(torch.finfo(dtype).eps) / 2


def cut_to_tf32(values: torch.Tensor) -> torch.Tensor:
    """What a tensor core reads of float32 values; float64, same shape."""
    single = values.to(torch.float32).contiguous()
    return (single.view(torch.int32) & ~0x1FFF).view(torch.float32).to(torch.float64)


def tiny(dtype: torch.dtype) -> float:
    """What flushing to zero may lose in an output type."""
    limits = torch.finfo(dtype)
    smallest = float(limits.smallest_normal)
    return smallest if smallest < _SMALLEST_HARMLESS else smallest * float(limits.eps)


def aligned(outputs: Mapping[str, Output], expected: Mapping[str, Expected]) -> Mapping[str, Output]:
    """Outputs in the expected order where indices among them may have any.

    Those of the indices' shape follow them: what was gathered by indices has their order.
    """
    for name, wanted in expected.items():
        chosen, indices = wanted.selection, outputs.get(name)
        if chosen is None or not chosen.any_order or indices is None or indices.shape != chosen.shape:
            continue
        order = expected_order(indices, wanted.reference, chosen)
        return {
            each: value.gather(chosen.axis, order)
            if value is not None and value.shape == indices.shape
            else value
            for each, value in outputs.items()
        }
    return outputs


def deviation(got: torch.Tensor, expected: Expected) -> Deviation:
    """Compare a result of any dtype with what was expected."""
    reference = expected.reference
    if reference.numel() == 0:
        return Deviation(share=0.0, error=0.0, wrong=0, total=0, where=None)
    got = torch.view_as_real(got.resolve_conj()) if got.is_complex() else got
    if reference.numel() > AT_ONCE and expected.is_elementwise:
        return _in_parts(got, expected)
    if expected.unordered:
        got = got.flatten().sort().values.reshape(got.shape)
    wide = got.to(torch.float64)
    error = unexplained(wide, expected) if expected.before_rounding else wide.sub(reference).abs_()
    for other in expected.accepted:
        error = torch.minimum(error, wide.sub(other).abs_())
    if expected.integers:
        equal = functools.reduce(torch.logical_or, (got == each for each in expected.integers))
        error = error.clamp_(min=1.0).masked_fill_(equal, 0.0)
    if expected.selection is not None:
        error[select_the_same(got, reference, expected.selection)] = 0.0
    shares = error / expected.bound
    if not expected.plain and not expected.before_rounding:
        shares = _with_special_values(got.to(torch.float64), expected, shares)
    worst = _not_nan(shares.max().item())
    overall = _overall(error, expected)
    row = _by_rows(got, expected)
    if worst <= 1.0:
        largest = error.max().item() if expected.plain else _largest_finite(error)
        wrong = 0
    else:
        largest, wrong = _largest_finite(error), int((~(shares <= 1.0)).sum().item())
    return Deviation(
        share=max(worst, overall, row),
        error=largest,
        wrong=wrong,
        total=error.numel(),
        where=_index(shares),
        overall=overall,
        row=row,
    )


def _in_parts(got: torch.Tensor, expected: Expected) -> Deviation:
    """The same for a large output, without temporary tensors of its size."""
    flat = [item.reshape(-1) for item in (got, expected.reference, expected.bound)]
    worst, error, wrong, place = -1.0, 0.0, 0, 0
    for start in range(0, expected.reference.numel(), AT_ONCE):
        value, reference, bound = (item[start : start + AT_ONCE] for item in flat)
        found = deviation(value, msgspec.structs.replace(expected, reference=reference, bound=bound))
        error, wrong = max(error, found.error), wrong + found.wrong
        if found.share > worst and found.where is not None:
            worst, place = found.share, start + found.where[0]
    return Deviation(
        share=worst,
        error=error,
        wrong=wrong,
        total=expected.reference.numel(),
        where=_unraveled(place, expected.reference.shape),
    )


def unexplained(got: torch.Tensor, expected: Expected) -> torch.Tensor:
    """How far the reference is from all values that are rounded to `got`; float64.

    On the edge between two numbers, the one that PyTorch rounds to is right; the error of the other one is
    what float64 can tell.
    """
    reference, dtype = expected.reference, getattr(torch, expected.dtype)
    got = got.to(dtype).to(torch.float64)
    numbers, edges = (item.to(got.device) for item in _numbers_and_edges(dtype))
    place = torch.searchsorted(numbers, got.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).contiguous())
    lower, upper = edges[place], edges[place + 1]
    first, last = edges[0].expand_as(got), edges[-1].expand_as(got)
    outside = torch.minimum(reference - first, last - reference)
    error = torch.maximum(lower - reference, reference - upper)
    error = torch.where(got.isinf(), torch.where(got > 0, last - reference, reference - first), error)
    error = torch.where(got.isnan(), outside, error)
    error = error.clamp_(min=0.0).add_(reference.abs(), alpha=torch.finfo(torch.float64).eps)
    wanted = reference.to(dtype).to(torch.float64)
    error = error.nan_to_num_(nan=math.inf, posinf=math.inf)
    return error.masked_fill_((got == wanted) | (got.isnan() & wanted.isnan()), 0.0)


@functools.cache
def _numbers_and_edges(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """All finite numbers of a type of 8 bits in order, and the edges of what is rounded to each of them."""
    numbers = torch.arange(256, dtype=torch.uint8, device="cpu").view(dtype).to(torch.float64)
    numbers = numbers[numbers.isfinite()].unique()  # type: ignore[no-untyped-call]
    inner = (numbers[1:] + numbers[:-1]) / 2
    beyond = torch.tensor([-1e30, 1e30], dtype=torch.float64, device="cpu").to(dtype).to(torch.float64)
    ends = torch.stack([numbers[0] * 1.5 - numbers[1] / 2, numbers[-1] * 1.5 - numbers[-2] / 2])
    # Conversions that saturate round all larger values to the largest number.
    ends = torch.where(beyond.isfinite(), torch.tensor([-math.inf, math.inf], dtype=torch.float64), ends)
    return numbers, torch.cat([ends[:1], inner, ends[1:]])


def _overall(error: torch.Tensor, expected: Expected) -> float:
    """Small errors that are systematic: each within its bound, all together more than rounding explains."""
    if expected.spread is None or math.isinf(expected.limit):
        return 0.0
    squares = (error / expected.spread).square_()
    if not expected.plain:
        squares = squares[squares.isfinite() & expected.reference.isfinite()]
    return math.sqrt(squares.mean().item()) / expected.limit if squares.numel() else 0.0


def scale_errors(error: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """By which factor each row is off, in units of 1: the error's part along the row.

    0 where a row repeats one value: then all its elements are rounded alike. Where elements left the range of
    the type, the few others tell less: their factor counts as what it says about the whole row.
    """
    known = torch.where(reference.isfinite(), reference, 0.0)
    finite = torch.where(error.isfinite(), known, 0.0)
    energy, whole = finite.square().sum(-1), known.square().sum(-1)
    found = (error.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0) * finite).sum(-1) / energy.clamp(min=1e-300)
    found = found * (energy / whole.clamp(min=1e-300)).sqrt()
    size = finite.abs()
    varied = size.std(-1) > _VARIED * size.mean(-1)
    return torch.where(varied, found, torch.zeros_like(found))


def _by_rows(got: torch.Tensor, expected: Expected) -> float:
    """A row whose elements are all too large or too small by one factor: its sum, its scale is wrong.

    Relative to the reference, and to the reference as rounded to the output's type: where values lie on a few
    lines of that type, all of a row may be rounded in one direction, in one of the two and not in the other.
    """
    if expected.row_limit is None and math.isinf(expected.scale_limit):
        return 0.0
    reference, values = expected.reference, got.to(torch.float64)
    rounded = reference.to(getattr(torch, expected.dtype)).to(torch.float64)
    errors = (values - rounded, values - reference)
    flat = reference.reshape(-1)
    share = float(_common_factor([each.reshape(-1) for each in errors], flat)) / expected.scale_limit
    if expected.row_limit is not None:
        share = max(share, float((_common_factor(errors, reference) / expected.row_limit).max()))
    return share


def _common_factor(errors: Sequence[torch.Tensor], reference: torch.Tensor) -> torch.Tensor:
    """Of each row, by the kinder of two errors."""
    return torch.minimum(*(scale_errors(error, reference).abs_() for error in errors))


def _with_special_values(got: torch.Tensor, expected: Expected, shares: torch.Tensor) -> torch.Tensor:
    """NaN where the reference is NaN; infinity where it is, or rounds to it in the output type."""
    reference, bound = expected.reference, expected.bound
    largest = float(torch.finfo(getattr(torch, expected.dtype)).max)
    right, wrong = torch.zeros_like(shares), torch.full_like(shares, math.inf)
    shares = torch.where(got.isfinite(), shares, wrong)
    # Rounding to nearest overflows from half a unit in the last place beyond the largest number.
    overflow = largest * (1.0 + unit_roundoff(getattr(torch, expected.dtype)))
    same_infinity = got.isinf() & (got.signbit() == reference.signbit())
    may_overflow = reference.abs() + bound >= overflow
    must_overflow = (reference.abs() - bound >= overflow) | reference.isinf()
    shares = torch.where(may_overflow & same_infinity, right, shares)
    shares = torch.where(must_overflow & ~same_infinity, wrong, shares)
    return torch.where(reference.isnan(), torch.where(got.isnan(), right, wrong), shares)


def _not_nan(share: float) -> float:
    return math.inf if math.isnan(share) else share


def _largest_finite(error: torch.Tensor) -> float:
    return float(torch.nan_to_num(error, nan=0.0, posinf=0.0).max().item())


def _index(shares: torch.Tensor) -> tuple[int, ...]:
    return _unraveled(int(shares.argmax().item()), shares.shape)  # argmax takes NaN for the largest


def _unraveled(rest: int, shape: torch.Size) -> tuple[int, ...]:
    # torch.unravel_index would import half a second of symbolic algebra.
    index: list[int] = []
    for size in reversed(shape):
        rest, position = divmod(rest, size)
        index.insert(0, position)
    return tuple(index)
