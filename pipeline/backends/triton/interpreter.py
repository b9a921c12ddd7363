"""Triton's interpreter with bfloat16 mended, so that a right kernel is not judged wrong.

Up to 3.9 the interpreter keeps bfloat16 values as 16-bit integers and converts them only in casts: `tl.dot`
and arithmetic work on the integers, and a cast from float32 cuts bits off where hardware rounds to nearest
even. Here such operations run on float32 and round once. 3.6 also fails on loop bounds under NumPy 2.4. And
each call of a device function searches Triton's modules for built-ins anew, which takes a third of the time:
here their names are remembered. A floating-point argument, which a compiled kernel gets as float32, stays a
Python number, without the methods of a scalar; sums of bfloat16 add up the bits as integers; the device
library has no bodies (`libdevice`); and reductions by a function of the kernel take seconds (`reductions`).
"""

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from pipeline.backends.triton import libdevice, reductions

_METHODS = (
    "binary_op", "unary_op", "ternary_op", "create_fma", "create_erf", "create_rsqrt", "create_dot",
)  # fmt: skip
_OPERATORS = (
    "__add__", "__sub__", "__mul__", "__truediv__", "__floordiv__", "__mod__", "__and__", "__or__", "__xor__",
    "__lshift__", "__rshift__", "__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__",
)  # fmt: skip
_MENDED = "_kernelmill_mended"


def mend() -> None:
    """Replace the interpreter's methods; a second call does nothing."""
    builder = interpreter.InterpreterBuilder
    if getattr(builder, _MENDED, False):
        return
    for name in _METHODS:
        setattr(builder, name, _through_float32(getattr(builder, name)))
    builder.cast_impl = _cast(builder.cast_impl)
    builder.create_fp_to_fp = _convert(builder.create_fp_to_fp, builder.cast_impl)
    interpreter.ReduceOps.sum = _sum(interpreter.ReduceOps.sum)
    interpreter.ReduceOps.generic_reduce = reductions.by_rows(interpreter.ReduceOps.generic_reduce)
    interpreter._patch_lang_tensor = _scalars(interpreter._patch_lang_tensor)
    interpreter._patch_builtin = _patch_builtin
    interpreter._implicit_cvt = _argument(interpreter._implicit_cvt)
    for name in _OPERATORS:
        setattr(tl.constexpr, name, _with_tensor(getattr(tl.constexpr, name), getattr(operator, name)))
    libdevice.mend(_widened, _narrowed)
    setattr(builder, _MENDED, True)


def widen(bits: np.ndarray) -> np.ndarray:
    """bfloat16 bits -> float32, exactly."""
    wide: np.ndarray = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return wide


def narrow(values: np.ndarray) -> np.ndarray:
    """float32 -> bfloat16 bits, to nearest even."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), np.uint32(0x7FC0), rounded).astype(np.uint16)


def _is_bfloat16(operand: Any) -> bool:
    return isinstance(operand, interpreter.TensorHandle) and operand.dtype.scalar == tl.bfloat16


def _widened(operand: Any) -> Any:
    return interpreter.TensorHandle(widen(operand.data), tl.float32) if _is_bfloat16(operand) else operand


def _narrowed(handle: Any) -> Any:
    return interpreter.TensorHandle(narrow(handle.data), tl.bfloat16)


def _through_float32(method: Callable[..., Any]) -> Callable[..., Any]:
    """Run on float32 copies of bfloat16 operands; the last operand's type is the result's."""

    def operation(self: Any, *operands: Any) -> Any:
        handles = [operand for operand in operands if isinstance(operand, interpreter.TensorHandle)]
        if not any(_is_bfloat16(handle) for handle in handles):
            return method(self, *operands)
        result = method(self, *(_widened(operand) for operand in operands))
        if result.data.dtype == np.bool_ or not _is_bfloat16(handles[-1]):
            return result
        return _narrowed(result)

    return operation


def _cast(method: Callable[..., Any]) -> Callable[..., Any]:
    def cast(self: Any, source: Any, kind: Any) -> Any:
        if kind.scalar != tl.bfloat16:
            return method(self, _widened(source), kind)
        if _is_bfloat16(source):
            return source
        return _narrowed(method(self, source, tl.float32))

    return cast


def _convert(method: Callable[..., Any], cast: Callable[..., Any]) -> Callable[..., Any]:
    def convert(self: Any, source: Any, kind: Any, rounding: Any) -> Any:
        towards_zero = rounding is not None and "RTZ" in str(rounding)
        if towards_zero or not (_is_bfloat16(source) or kind.scalar == tl.bfloat16):
            return method(self, source, kind, rounding)
        return cast(self, source, kind)

    return convert


def _sum(method: Callable[..., Any]) -> Callable[..., Any]:
    """Of bfloat16 as a tree that rounds at every level: like a device, which adds pairs in that type."""

    def total(self: Any, operand: Any) -> Any:
        if not _is_bfloat16(operand.handle):
            return method(self, operand)
        values = widen(operand.handle.data)
        axis = self.axis
        if axis is None:
            values, axis = values.reshape(-1), 0
        while values.shape[axis] > 1:
            half = (values.shape[axis] + 1) // 2
            first, second = np.split(values, [half], axis=axis)
            padding = [
                (0, half - second.shape[axis]) if each == axis else (0, 0) for each in range(values.ndim)
            ]
            values = widen(narrow(first + np.pad(second, padding)))
        if self.axis is None:
            values = values.reshape((1,) * operand.handle.data.ndim)
        if not self.keep_dims:
            values = values.reshape(()) if self.axis is None else np.squeeze(values, axis=axis)
        return self.to_tensor(narrow(values).reshape(values.shape), operand.dtype)

    return total


def _argument(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Of a launch; a number rounds to float32, as in the registers of a device."""

    def converted(value: Any) -> Any:
        if isinstance(value, bool):
            return tl.tensor(interpreter.TensorHandle(np.array([value]), tl.int1), tl.int1)
        if isinstance(value, float):
            handle = interpreter.TensorHandle(np.array([value], dtype=np.float32), tl.float32)
            return tl.tensor(handle, tl.float32)
        return convert(value)

    return converted


def _with_tensor(method: Callable[..., Any], plain: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Of a constant on the left of a tensor; compiled, it becomes a tensor, not the other way round."""

    def operation(self: Any, other: Any) -> Any:
        return plain(self.value, other) if isinstance(other, tl.tensor) else method(self, other)

    return operation


def _scalars(patch: Callable[..., None]) -> Callable[..., None]:
    def patched(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.squeeze()))
        scope.set_attr(tensor, "__bool__", reductions.truth)

    return patched


def _patch_builtin(package: Any, builder: Any, scope: Any) -> None:
    for name in _builtin_names(package):
        member = getattr(package, name)
        if tl.core.is_builtin(member):  # not patched yet
            interpreter._patch_attr(package, name, member, builder, scope)


@functools.cache
def _builtin_names(package: Any) -> tuple[str, ...]:
    return tuple(name for name, member in inspect.getmembers(package) if tl.core.is_builtin(member))
