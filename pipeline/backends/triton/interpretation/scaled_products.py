"""`tl.dot_scaled` in Triton's interpreter, which has it from 3.9 on.

In: blocks of e2m1, e4m3, e5m2, bf16 or fp16, each with a scale per group along K, or without. Out: their
product, added to the accumulator.

Values are multiplied with their scales in bfloat16, or in float16 if one of the operands is float16: what
Triton does on targets without instructions for such formats. The formats are those of OCP's Microscaling
Formats (MX) 1.0; a scale of 255 is NaN, unless `fast_math` is set.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl

from pipeline.backends.triton.interpretation import eight_bits
from pipeline.backends.triton.interpretation.dot_precision import multiply, round_to_bfloat16
from pipeline.backends.triton.triton_internals import interpreter

Rounding = Callable[[np.ndarray], np.ndarray]

_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
_E8M0_BIAS, _E8M0_NAN = 127, 255


class _Format(str):
    """The name of a format; up to 3.8, Triton asks for the value of a constant."""

    __slots__ = ()

    @property
    def value(self) -> str:
        return str(self)


def install(widened: Callable[[Any], Any]) -> None:
    """Let the interpreter multiply so; `widened`: handles of bfloat16 -> of float32."""
    semantic = type(interpreter().interpreter_semantic)
    check = semantic.dot_scaled

    @functools.wraps(check)
    def dot_scaled(self: Any, *arguments: Any) -> Any:
        constants = (getattr(each, "value", each) for each in arguments)
        return check(self, *(_Format(each) if isinstance(each, str) else each for each in constants))

    def create_dot_scaled(  # noqa: PLR0913, PLR0917  (Triton's interface)
        _self: Any,
        left: Any, left_scale: Any, left_format: Any,
        right: Any, right_scale: Any, right_format: Any,
        fast_math: bool, left_packs_k: bool, right_packs_k: bool,
        sums: Any,
    ) -> Any:  # fmt: skip
        names = [str(each).rpartition(".")[2] for each in (left_format, right_format)]
        rounding = _round_to_float16 if "FP16" in names else round_to_bfloat16
        with np.errstate(over="ignore", invalid="ignore"):
            lefts, rights = (
                _scaled(
                    _values(widened(handle), name, packed_axis),
                    None if scale is None else rounding(_scales(scale, keep_infinity=fast_math)),
                    rounding,
                )
                for handle, scale, name, packed_axis in (
                    (left, left_scale, names[0], -1 if left_packs_k else -2),
                    (_transposed(right), right_scale, names[1], -1 if right_packs_k else -2),
                )
            )
            products = multiply(lefts, np.swapaxes(rights, -1, -2))
        return interpreter().TensorHandle(products + sums.data, tl.float32)

    semantic.dot_scaled = dot_scaled
    interpreter().InterpreterBuilder.create_dot_scaled = create_dot_scaled


def _transposed(handle: Any) -> Any:
    """[K, N] -> [N, K], as its scales are."""
    return interpreter().TensorHandle(np.swapaxes(handle.data, -1, -2), handle.dtype.scalar)


def _values(handle: Any, name: str, packed_axis: int) -> np.ndarray:
    """In float32, exactly."""
    if name == "E2M1":
        return _unpacked(handle.data, packed_axis)
    kind, data = handle.dtype.scalar, handle.data
    values: np.ndarray = (
        eight_bits.decode(data, kind) if eight_bits.is_eight_bits(kind) else data.astype(np.float32)
    )
    return values


def _unpacked(pairs: np.ndarray, axis: int) -> np.ndarray:
    """Two values of 4 bits from each byte, the first from the lower bits."""
    pairs = np.moveaxis(pairs.view(np.uint8), axis, -1)
    codes = np.stack([pairs & 0xF, pairs >> 4], axis=-1).reshape(*pairs.shape[:-1], -1)
    values = np.copysign(_E2M1[codes & 7], np.where(codes & 8, np.float32(-1), np.float32(1)))
    return np.moveaxis(values, -1, axis)


def _scales(handle: Any, *, keep_infinity: bool) -> np.ndarray:
    kind = handle.dtype.scalar
    if eight_bits.is_eight_bits(kind):
        return eight_bits.decode(handle.data, kind)
    exponents = handle.data.view(np.uint8).astype(np.int32)
    scales = np.ldexp(np.float32(1), exponents - _E8M0_BIAS)
    return np.where(exponents == _E8M0_NAN, np.float32(np.inf if keep_infinity else np.nan), scales)


def _scaled(values: np.ndarray, scales: np.ndarray | None, rounding: Rounding) -> np.ndarray:
    """`scales`: one for each group along the last dimension."""
    if scales is None:
        return rounding(values)
    group = values.shape[-1] // scales.shape[-1]
    return rounding(values * np.repeat(scales, group, axis=-1))


def _round_to_float16(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float16).astype(np.float32)
