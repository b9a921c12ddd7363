"""How wrong may an output be? A bound per element, derived from types, reduction length and magnitudes.

In: the reference and the magnitudes that entered each output, in float64. Out: per element the largest
error that rounding can explain, and for a result the share of it that was used.

The bound is `factor * (u_out |reference| + terms u_acc magnitude) + tiny` with
- `u`: unit roundoff of the output and the accumulation type (Higham 2002, section 2.1);
- `terms = min(n, 8 sqrt(n))` for n accumulated terms: n is the worst case of any order of summation
  (section 4.2), rounding errors of mixed signs grow like sqrt(n), and 8 times that does not occur by chance
  (Higham and Mary 2019, doi:10.1137/18M1226312);
- `tiny`: what flushing to zero may lose. Types with the exponent of float32 may flush subnormals as a whole
  (GPUs and `-ffast-math` do, 1e-38 is nothing), narrower ones only their smallest subnormal.
"""

import math

import torch

from pipeline.records.record import Record

_SMALLEST_HARMLESS = 1e-30  # a smallest normal number below this may be flushed to zero


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


class Expected(Record, frozen=True, kw_only=True, eq=False):
    """What one output should be."""

    dtype: str
    reference: torch.Tensor
    """float64, contiguous."""
    bound: torch.Tensor
    """float64, positive and finite, same shape."""
    plain: bool
    """All references are finite and none is near the largest number of the output type."""


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
    # A magnitude that is not finite says nothing about a finite reference: only the last rounding is left.
    bound = torch.nan_to_num(magnitude.abs(), nan=0.0, posinf=0.0).mul_(accumulated)
    bound.add_(torch.nan_to_num(reference.abs(), nan=0.0, posinf=0.0), alpha=rounding)
    bound.mul_(precision.factor).add_(_tiny(dtype))
    # NaN compares false, so a reference that is not finite makes this false as well.
    plain = bool((reference.abs() + bound < torch.finfo(dtype).max).all())
    return Expected(
        dtype=precision.output, reference=reference.contiguous(), bound=bound.contiguous(), plain=plain
    )


def unit_roundoff(dtype: torch.dtype) -> float:
    """Largest relative error of rounding to nearest: half the distance from 1 to the next number."""
    return float(torch.finfo(dtype).eps) / 2


def _tiny(dtype: torch.dtype) -> float:
    limits = torch.finfo(dtype)
    smallest = float(limits.smallest_normal)
    return smallest if smallest < _SMALLEST_HARMLESS else smallest * float(limits.eps)


def deviation(got: torch.Tensor, expected: Expected) -> Deviation:
    """Compare a result of any dtype with what was expected."""
    reference = expected.reference
    if reference.numel() == 0:
        return Deviation(share=0.0, error=0.0, wrong=0, total=0, where=None)
    error = got.to(torch.float64).sub_(reference).abs_()
    shares = error / expected.bound
    if not expected.plain:
        shares = _with_special_values(got.to(torch.float64), expected, shares)
    worst = _not_nan(shares.max().item())
    if worst <= 1.0:
        largest = error.max().item() if expected.plain else _largest_finite(error)
        return Deviation(share=worst, error=largest, wrong=0, total=error.numel(), where=_index(shares))
    return Deviation(
        share=worst,
        error=_largest_finite(error),
        wrong=int((~(shares <= 1.0)).sum().item()),
        total=error.numel(),
        where=_index(shares),
    )


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
    # argmax takes NaN for the largest; torch.unravel_index would import half a second of symbolic algebra.
    rest = int(shares.argmax().item())
    index: list[int] = []
    for size in reversed(shares.shape):
        rest, position = divmod(rest, size)
        index.insert(0, position)
    return tuple(index)
