"""Which results no implementation rounds, so that a step of them (`round`, a comparison) has one outcome.

In: operands and results of one operation, in float64. Out: whether every usual way to compute it is exact
where its result is held by its type; such results, NaN for all others.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch

STEPS = frozenset(
    {
        *("round", "floor", "ceil", "trunc", "sign", "sgn", "signbit", "bucketize"),
        *("eq", "ne", "ge", "gt", "le", "lt"),
    }
)
"""Operations that a small error of an operand may lead to another value."""
_CONVERSIONS = frozenset({"_to_copy", "convert_element_type"})
_ONCE = frozenset({"add", "sub", "rsub", "mul", "square"})
"""Correctly rounded everywhere: exact where the type holds the result."""
_DIGITS = 2.0**24  # units that float32 counts without rounding
_FRACTIONS = (0, 8, 16)  # bits after the point that the terms of a sum may have
_NEAR = 0.02  # of an operand and of their root mean square: noise is less


def is_step(name: str, keywords: Mapping[str, Any]) -> bool:
    """Whether an operation is one; a conversion to integers cuts off."""
    dtype = keywords.get("dtype")
    return name in STEPS or (
        name in _CONVERSIONS
        and dtype is not None
        and not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool)
    )


def never_rounds(name: str, values: tuple[Any, ...], result: Any) -> bool:
    """Whether every usual way to compute this is exact where the result's type holds the result.

    A quotient is, if dividing is multiplying by a power of two; a sum, if its terms are multiples of one
    unit, so few of them that no order of them rounds.
    """
    if not all(_is_single(item) for item in values):
        return False  # a kernel has another number
    if name in _ONCE:
        return True
    if name in ("div", "true_divide"):
        return len(values) == 2 and _is_power_of_two(values[1])
    if name not in ("sum", "mean") or not isinstance(result, torch.Tensor) or not result.numel():
        return False
    terms: torch.Tensor = values[0]
    count = terms.numel() / result.numel()
    if name == "mean" and not _is_power_of_two(count):
        return False
    size = float(terms.abs().nan_to_num_(nan=0.0).max()) * count if terms.numel() else 0.0
    return any(
        size * 2.0**bits < _DIGITS and bool((terms.mul(2.0**bits).frac().nan_to_num_(nan=0.0) == 0).all())
        for bits in _FRACTIONS
    )


def where_held(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Elements that `dtype` holds; NaN for those that it would round."""
    if value.is_complex():
        return value * math.nan
    return value.masked_fill(value.to(dtype).to(value.dtype) != value, math.nan)


def without_noise(value: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """The exact operand of a step where there is one (not NaN), else the noisy one.

    Where a step before it went another way, the two are apart, and the noisy one stays.
    """
    size = exact.abs()
    typical = float(size.square().nanmean().sqrt().nan_to_num(nan=0.0, posinf=0.0))
    return torch.where((value - exact).abs() <= _NEAR * (size + typical), exact, value)


def _is_single(value: Any) -> bool:
    """Whether float32 holds a number, or all elements (NaN aside)."""
    if isinstance(value, float):
        return float(torch.tensor(value, dtype=torch.float32)) == value or math.isnan(value)
    if not isinstance(value, torch.Tensor) or value.dtype != torch.float64:
        return True
    return bool(((value.to(torch.float32).to(torch.float64) == value) | value.isnan()).all())


def _is_power_of_two(value: Any) -> bool:
    """Of all elements."""
    if isinstance(value, torch.Tensor):
        mantissa, _ = torch.frexp(value.to(torch.float64))
        return bool((mantissa.abs() == 0.5).all())
    return isinstance(value, (int, float)) and math.frexp(abs(value))[0] == 0.5
