"""The rounding error of elementwise functions, and the operations that make none.

In: the arguments and the result of one operation, in float64. Out: the standard deviation of its error in
units of the roundoff of the type it is computed in, before its result is rounded to the nominal type.

The formulas cover every way a function is usually computed: `exp(x)` as `2^(x log2 e)`, so that the
argument is off by |x| units; a geometric series, as decays over positions are, as products of one factor
with itself; `tanh`, `sigmoid`, `erf` and functions built on them with an error relative to
their range, as one may be written by another; `log(1 + x)` without care near 0.
"""

from collections.abc import Callable
from typing import Any

import torch

Tensor = torch.Tensor

_EXACT = """
    _conj _local_scalar_dense _neg_view _reshape_alias _reshape_copy _to_copy _unique2 _unsafe_index
    _unsafe_view abs adaptive_max_pool2d adaptive_max_pool3d alias alias_copy amax amin arange argmax argmin
    as_strided bitwise_and bitwise_not bitwise_or bitwise_xor broadcast_in_dim broadcast_to bucketize cat
    ceil channel_shuffle clamp clamp_max clamp_min clone column_stack complex constant_pad_nd contiguous
    convert_element_type copy cummax cummin detach diag diag_embed diagonal diagonal_scatter embedding empty
    empty_like empty_permuted empty_strided eq equal expand expand_copy eye fill flip floor fmax fmin
    fractional_max_pool2d full full_like gather ge gt hardtanh hardtanh_backward heaviside im2col imag index
    index_copy index_fill index_select isfinite isinf isnan kthvalue le lift lift_fresh lift_fresh_copy lt
    masked_fill masked_scatter masked_select max max_pool2d_with_indices max_pool3d_with_indices maximum
    median min minimum mode movedim nan_to_num narrow native_channel_shuffle ne neg new_empty
    new_empty_strided new_full new_ones new_zeros nonzero ones ones_like permute pixel_shuffle
    pixel_unshuffle positive real reflection_pad1d reflection_pad2d reflection_pad3d relu repeat
    replication_pad1d replication_pad1d_backward replication_pad2d replication_pad3d reshape resolve_conj
    resolve_neg roll rot90 round scalar_tensor scatter searchsorted select select_backward select_scatter
    sgn sign signbit slice slice_backward slice_scatter sort split split_with_sizes squeeze stack t
    threshold threshold_backward tile topk transpose tril tril_indices triu triu_indices trunc unbind unfold
    unique_consecutive unsafe_split unsafe_split_with_sizes unsqueeze value_selecting_reduction_backward
    view view_as_complex view_as_real where zeros zeros_like
"""
EXACT = frozenset(_EXACT.split())
"""Operations whose result holds values of their arguments, so that nothing is rounded."""

_ELEMENTWISE = """
    _prelu_kernel deg2rad dist div floor_divide fmod frac hardshrink hardsigmoid
    hardsigmoid_backward hardswish hardswish_backward hypot leaky_relu leaky_relu_backward linspace mul
    prelu rad2deg reciprocal remainder rsqrt rsub softshrink softsign sqrt square sub true_divide
"""
ELEMENTWISE = frozenset(_ELEMENTWISE.split())
"""Rounded once, with an error of at most some units of the result."""

_SERIES = 4  # equal steps, and more, are no accident
_LONGEST = 1024  # factors
_OF_ONE = 1.5  # units by which the exponential of a small number is off

Units = Callable[[tuple[Any, ...], Tensor], Tensor]


def _first(arguments: tuple[Any, ...]) -> Tensor:
    found: Tensor = next(item for item in arguments if isinstance(item, torch.Tensor))
    return found.to(torch.float64) if not found.is_complex() else found


def _exponential(arguments: tuple[Any, ...], result: Tensor) -> Tensor:
    return (_first(arguments).abs() + _OF_ONE) * result.abs()


def _decaying(arguments: tuple[Any, ...], result: Tensor) -> Tensor:
    x = _first(arguments)
    return (torch.maximum(x.abs(), _OF_ONE * _factors(x)) + _OF_ONE) * result.abs()


def _factors(x: Tensor) -> Tensor:
    """How often a recurrence multiplies by one factor, whose error is the same each time: where `x` grows in
    equal steps along one of the last two axes; else 0. Some may be equal, as at positions that are masked."""
    for axis in (-1, -2):
        if x.is_complex() or x.dim() < -axis or x.shape[axis] < _SERIES or not x.numel():
            continue
        lines = x.movedim(axis, -1)
        steps = lines[(-1,) * (x.dim() - 1)].diff()
        steps = steps[steps != 0]
        if steps.numel() < _SERIES - 1 or not bool(((steps - steps[0]).abs() <= 1e-3 * steps[0].abs()).all()):
            continue
        size = lines.abs()
        step = lines.diff().abs().nan_to_num(0.0, 0.0).amax(-1, keepdim=True).clamp(min=1e-300)
        count = (size - size.amin(-1, keepdim=True)) / step
        return count.nan_to_num(0.0).clamp(max=min(x.shape[axis], _LONGEST)).movedim(-1, axis)
    return torch.zeros((), dtype=torch.float64, device=x.device)


def _exponential_minus_one(arguments: tuple[Any, ...], result: Tensor) -> Tensor:
    return (_first(arguments).abs() + 1.5) * (result + 1.0).abs()


def _by_range(_arguments: tuple[Any, ...], result: Tensor) -> Tensor:
    """Error relative to a range of order 1."""
    return result.abs() * 1.5 + 1.5


def _by_argument(arguments: tuple[Any, ...], result: Tensor) -> Tensor:
    """An argument times a function of range 1: gelu, silu, mish."""
    x = _first(arguments).abs()
    return 2.5 * x + result.abs() * (1.5 + x.clamp(max=20.0) * 0.5)


def _logarithm_sum(arguments: tuple[Any, ...], result: Tensor) -> Tensor:
    """softplus and its kin: log(1 + exp(x))."""
    return result.abs() * 1.5 + 1.0 + _first(arguments).abs() * 0.5


def _periodic(arguments: tuple[Any, ...], _result: Tensor) -> Tensor:
    return _first(arguments).abs() + 1.0


def _power(arguments: tuple[Any, ...], result: Tensor) -> Tensor:
    """x^p through exp2(p log2 x); small whole powers are products."""
    base, exponent = arguments[0], arguments[1]
    if isinstance(exponent, int | float) and abs(exponent) <= 4 and float(2 * exponent).is_integer():
        return result.abs() * (1.0 + abs(exponent))
    base = torch.as_tensor(base, dtype=torch.float64) if not isinstance(base, Tensor) else base
    power = torch.as_tensor(exponent) if not isinstance(exponent, Tensor) else exponent
    growth = (power * base.abs().clamp(min=1e-300).log()).abs()
    return result.abs() * (growth + 2.0)


def _gradient(arguments: tuple[Any, ...], result: Tensor) -> Tensor:
    """Incoming gradient times the derivative of a function of range 1."""
    return _first(arguments).abs() * 2.0 + result.abs() * 1.5


def _gradient_by_argument(arguments: tuple[Any, ...], result: Tensor) -> Tensor:
    """Incoming gradient times a derivative that has the argument in it: gelu, silu, mish."""
    gradient, x = arguments[0], arguments[1]
    return gradient.abs() * (2.0 + x.abs()) + result.abs() * 1.5  # type: ignore[no-any-return]


def _sum_of_two(arguments: tuple[Any, ...], result: Tensor) -> Tensor:
    """What is added may itself be a product that was not rounded, or be added in another order."""
    units = result.abs() * 0.4
    for item in arguments[:2]:
        if isinstance(item, Tensor):
            units = units + item.abs() * 0.25
    return units


def _product_added(arguments: tuple[Any, ...], result: Tensor) -> Tensor:
    """addcmul, addcdiv: what is added may be much larger than the sum."""
    return torch.sub(result, arguments[0]).abs() * 1.2 + result.abs() * 0.4


def _interpolated(arguments: tuple[Any, ...], result: Tensor) -> Tensor:
    """Both ends times their weights, or the difference of the ends times one."""
    start, end = arguments[:2]
    return 0.5 * torch.maximum(start.abs(), torch.as_tensor(end).abs()).expand_as(result)


def _resampled(arguments: tuple[Any, ...], result: Tensor) -> Tensor:
    """Weights follow from coordinates, which are off by as many units as they are large."""
    x, axes = _first(arguments), arguments[0].dim() - 2
    coordinate = 0.5 * max(x.shape[-axes:], default=1)
    typical = x.square().mean(tuple(range(-axes, 0)), keepdim=True).sqrt()
    return result.abs() + coordinate * typical.expand_as(result)


UNITS: dict[str, Units] = {
    **dict.fromkeys(("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"), _resampled),
    **dict.fromkeys(("upsample_bicubic2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"), _resampled),
    "add": _sum_of_two,
    "addcmul": _product_added,
    "addcdiv": _product_added,
    "lerp": _interpolated,
    "sub": _sum_of_two,
    "exp": _decaying,
    "exp2": _decaying,
    "expm1": _exponential_minus_one,
    "elu": _exponential_minus_one,
    "celu": _exponential_minus_one,
    "selu": _exponential_minus_one,
    "sinh": _exponential,
    "cosh": _exponential,
    "log": _by_range,
    "log2": _by_range,
    "log10": _by_range,
    "log1p": _by_range,
    "tanh": _by_range,
    "sigmoid": _by_range,
    "erf": _by_range,
    "erfc": _by_range,
    "atan": _by_range,
    "asin": _by_range,
    "acos": _by_range,
    "asinh": _by_range,
    "atanh": _by_range,
    "sin": _periodic,
    "cos": _periodic,
    "tan": _exponential,
    "gelu": _by_argument,
    "silu": _by_argument,
    "mish": _by_argument,
    "softplus": _logarithm_sum,
    "log_sigmoid_forward": _logarithm_sum,
    "logaddexp": _logarithm_sum,
    "logaddexp2": _logarithm_sum,
    "xlogy": _by_argument,
    "pow": _power,
    "tanh_backward": _gradient,
    "sigmoid_backward": _gradient,
    "softplus_backward": _gradient,
    "elu_backward": _gradient,
    "log_sigmoid_backward": _gradient,
    "gelu_backward": _gradient_by_argument,
    "silu_backward": _gradient_by_argument,
    "mish_backward": _gradient_by_argument,
}
"""Functions that need more than a last rounding: name -> standard deviation in units."""

TIES = frozenset({"sort", "topk", "kthvalue", "median"})
"""Operations that may return any of several equal elements."""
