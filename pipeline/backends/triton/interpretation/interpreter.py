"""Triton's interpreter with bfloat16 mended, so that a right kernel is not judged wrong.

Up to 3.9 the interpreter keeps bfloat16 values as 16-bit integers and converts them only in casts: `tl.dot`
and arithmetic work on the integers, and a cast from float32 cuts bits off where hardware rounds to nearest
even. Here such operations run on float32 and round once. 3.6 also fails on loop bounds under NumPy 2.4. It
takes twice the time for nothing: each call of a device function replaces Triton's built-ins anew, integer
arithmetic is checked for overflows and the result dropped unless `debug` is set, which it never is, and
the table of NumPy's types is made for each operation. A floating-point argument, which a compiled kernel gets
as float32, stays a Python number, without the methods of a scalar; sums of bfloat16 add up the bits as
integers; the device library has no bodies (`libdevice`); products of float32 ignore their precision
(`dot_precision`); reductions by a function of the kernel take seconds (they are computed on whole rows); and
`tl.maximum`, `tl.minimum` and `tl.clamp` keep a NaN that a GPU drops unless `propagate_nan` asks for it.
"""

import contextvars
import ctypes
import dataclasses
import functools
import inspect
import operator
import os
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton
import triton.language as tl

from pipeline.backends.triton import triton_internals
from pipeline.backends.triton.interpretation import (
    dot_precision,
    eight_bits,
    interpreted_syntax,
    kernel_interface,
    libdevice,
    pointer_arguments,
    sanitizer,
    scaled_products,
)

interpreter = triton_internals.interpreter()

_METHODS = (
    "binary_op", "unary_op", "ternary_op", "create_fma", "create_erf", "create_rsqrt", "create_dot",
)  # fmt: skip
_OPERATORS = (
    "__add__", "__sub__", "__mul__", "__truediv__", "__floordiv__", "__mod__", "__and__", "__or__", "__xor__",
    "__lshift__", "__rshift__", "__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__",
)  # fmt: skip
_FOLDING = contextvars.ContextVar("folding", default=False)
"""Whether a function for single values is at work on many."""
_MENDED = "_kernelmill_mended"


def mend() -> None:
    """Replace the interpreter's methods; a second call does nothing."""
    builder = interpreter.InterpreterBuilder
    if getattr(builder, _MENDED, False):
        return
    builder.create_maxnumf = lambda self, left, right: self.binary_op(left, right, np.fmax)
    builder.create_minnumf = lambda self, left, right: self.binary_op(left, right, np.fmin)
    builder.create_clampf = _clamp
    for name in _METHODS:
        setattr(builder, name, _through_float32(getattr(builder, name)))
    builder.create_atomic_rmw = _atomic(builder.create_atomic_rmw)
    builder.cast_impl = _cast(builder.cast_impl)
    builder.create_fp_to_fp = _convert(builder.create_fp_to_fp, builder.cast_impl)
    for bits in (8, 16, 32, 64):
        setattr(builder, f"get_uint{bits}", _unsigned(bits))
    builder.get_all_ones_value = _all_ones(builder.get_all_ones_value)
    if not hasattr(builder, "get_bf16"):
        builder.get_bf16 = lambda _self, value: _narrowed(_number(value))
    interpreter.ReduceOps.sum = _sum(interpreter.ReduceOps.sum)
    interpreter.ReduceOps.generic_reduce = _by_rows(interpreter.ReduceOps.generic_reduce, _reduced)
    interpreter.ScanOps.generic_scan = _by_rows(interpreter.ScanOps.generic_scan, _scanned)
    interpreter._patch_lang = _once(_without_names(interpreter._patch_lang))
    interpreter._patch_lang_tensor = _scalars(interpreter._patch_lang_tensor)
    interpreter._patch_builtin = _patch_builtin
    interpreter._implicit_cvt = _argument(interpreter._implicit_cvt)
    interpreter._get_np_dtype = _by_name(interpreter._get_np_dtype)
    tl.block_type.__init__ = _block_type(tl.block_type.__init__)
    tl.tensor.__init__ = _tensor(tl.tensor.__init__)
    options = interpreter.interpreter_builder.options
    if not options.debug:
        interpreter.interpreter_builder.options = dataclasses.replace(options, sanitize_overflow=False)
    for name in _OPERATORS:
        setattr(tl.constexpr, name, _with_tensor(getattr(tl.constexpr, name), getattr(operator, name)))
    libdevice.mend(_widened, _narrowed)
    pointer_arguments.install()
    kernel_interface.install()
    dot_precision.install()
    eight_bits.prepare()
    scaled_products.install(_widened)
    sanitizer.install()
    interpreted_syntax.install()
    setattr(builder, _MENDED, True)


def interpret_unseen() -> None:
    """Go on interpreting without the variable: packages that read it take another path than on a device."""
    triton.knobs.runtime.interpret = True
    os.environ.pop("TRITON_INTERPRET", None)


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
    return isinstance(operand, interpreter.TensorHandle) and operand.dtype.scalar.name == "bf16"


def _widened(operand: Any) -> Any:
    return interpreter.TensorHandle(widen(operand.data), tl.float32) if _is_bfloat16(operand) else operand


def _narrowed(handle: Any) -> Any:
    return interpreter.TensorHandle(narrow(handle.data), tl.bfloat16)


def _unsigned(bits: int) -> Callable[[Any, int], Any]:
    """A constant of an unsigned type; a negative one wraps around, which NumPy refuses."""
    dtype, kind = getattr(np, f"uint{bits}"), getattr(tl, f"uint{bits}")
    return lambda _self, value: interpreter.TensorHandle(np.array([int(value) % (1 << bits)], dtype), kind)


def _all_ones(method: Callable[..., Any]) -> Callable[..., Any]:
    """For unsigned types too: Triton's asks NumPy for -1."""

    def all_ones(self: Any, kind: Any) -> Any:
        element = kind.scalar  # a truth value counts as unsigned in Triton; NumPy has no such type
        if element == tl.int1 or not element.is_int_unsigned():
            return method(self, kind)
        return _unsigned(element.primitive_bitwidth)(self, -1)

    return all_ones


def _number(value: float) -> Any:
    return interpreter.TensorHandle(np.array([value], dtype=np.float32), tl.float32)


def _through_float32(method: Callable[..., Any]) -> Callable[..., Any]:
    """Run on float32 copies of bfloat16 operands; the last operand's type is the result's."""

    def operation(self: Any, *operands: Any) -> Any:
        handles = [operand for operand in operands if isinstance(operand, interpreter.TensorHandle)]
        some = any(_is_bfloat16(handle) for handle in handles)
        result = method(self, *((_widened(operand) for operand in operands) if some else operands))
        if result.data.dtype == np.bool_:  # of a comparison: Triton's keeps the type of its operands
            return interpreter.TensorHandle(result.data, tl.int1)
        return _narrowed(result) if some and _is_bfloat16(handles[-1]) else result

    return operation


def _atomic(method: Callable[..., Any]) -> Callable[..., Any]:
    """With additions in bfloat16, one after the other: Triton's adds no integers as floats."""

    def update(self: Any, operation: Any, pointer: Any, value: Any, mask: Any, *rest: Any) -> Any:
        is_sum = str(operation).rpartition(".")[2] == "FADD"
        if not (is_sum and _is_bfloat16(value)):
            return method(self, operation, pointer, value, mask, *rest)
        before, added = np.zeros(value.data.size, dtype=np.uint16), widen(value.data.ravel())
        for lane in np.flatnonzero(mask.data):
            element = ctypes.c_uint16.from_address(int(pointer.data.flat[lane]))
            before[lane] = element.value
            element.value = narrow(widen(before[lane]) + added[lane]).item()
        return interpreter.TensorHandle(before.reshape(value.data.shape), tl.bfloat16)

    return update


def _clamp(self: Any, value: Any, low: Any, high: Any, propagate: Any) -> Any:
    def clamped(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.fmin(np.fmax(values, low), high)
        return np.where(np.isnan(values), values, found) if propagate == tl.PropagateNan.ALL else found

    return self.ternary_op(value, low, high, clamped)


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
        if not towards_zero and any(map(eight_bits.is_eight_bits, (kind.scalar, source.dtype.scalar))):
            return _of_eight_bits(source, kind.scalar)
        if towards_zero or not (_is_bfloat16(source) or kind.scalar == tl.bfloat16):
            return method(self, source, kind, rounding)
        return cast(self, source, kind)

    return convert


def _of_eight_bits(source: Any, kind: Any) -> Any:
    """Conversion from and to types of 8 bits."""
    given = source.dtype.scalar
    wide = _widened(source).data
    values = eight_bits.decode(wide, given) if eight_bits.is_eight_bits(given) else wide.astype(np.float32)
    if eight_bits.is_eight_bits(kind):
        return interpreter.TensorHandle(eight_bits.encode(values, kind), kind)
    if kind == tl.bfloat16:
        return _narrowed(interpreter.TensorHandle(values, tl.float32))
    return interpreter.TensorHandle(values.astype(_FLOATS[kind]), kind)


_FLOATS = {tl.float16: np.float16, tl.float32: np.float32, tl.float64: np.float64}


def _sum(method: Callable[..., Any]) -> Callable[..., Any]:
    """Of 16-bit floats as a tree that rounds at every level: like a device, which adds pairs in that type."""

    def total(self: Any, operand: Any) -> Any:
        is_bfloat16 = _is_bfloat16(operand.handle)
        if not is_bfloat16 and operand.dtype.scalar != tl.float16:
            return method(self, operand)
        values = widen(operand.handle.data) if is_bfloat16 else operand.handle.data
        axis = self.axis
        if axis is None:
            values, axis = values.reshape(-1), 0
        while values.shape[axis] > 1:
            half = (values.shape[axis] + 1) // 2
            first, second = np.split(values, [half], axis=axis)
            padding = [
                (0, half - second.shape[axis]) if each == axis else (0, 0) for each in range(values.ndim)
            ]
            values = first + np.pad(second, padding)
            values = widen(narrow(values)) if is_bfloat16 else values
        if self.axis is None:
            values = values.reshape((1,) * operand.handle.data.ndim)
        if not self.keep_dims:
            values = values.reshape(()) if self.axis is None else np.squeeze(values, axis=axis)
        data = narrow(values).reshape(values.shape) if is_bfloat16 else values
        return self.to_tensor(data, operand.dtype)

    return total


def _argument(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Of a launch; a number rounds to float32, as in the registers of a device."""

    def converted(value: Any) -> Any:
        if isinstance(value, bool):
            return tl.tensor(interpreter.TensorHandle(np.array([value]), tl.int1), tl.int1)
        if isinstance(value, pointer_arguments.Pointer):
            return value.converted()
        if isinstance(value, float):
            return tl.tensor(_number(value), tl.float32)
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
        scope.set_attr(tensor, "__bool__", _truth)

    return patched


def _without_names(patch: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Of the language for a function; one of operators alone needs no module that names the language."""

    def patched(function: Any) -> Any:
        if any(value is tl or value is tl.core for value in function.__globals__.values()):
            return patch(function)
        return patch(types.SimpleNamespace(__globals__={"tl": tl}))

    return patched


def _once(patch: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Of the language for a launch; the device functions that it calls find it done."""
    done: set[Any] = set()
    other_names = _OtherNames()

    def patched(function: Any) -> Any:
        modules = {value for value in function.__globals__.values() if value is tl or value is tl.core}
        if modules and modules <= done:
            other_names.replace(function.__globals__)
            return interpreter._LangPatchScope()
        scope = patch(function)
        outermost = other_names.replace(function.__globals__)
        restore = scope.restore

        def restored() -> None:
            done.clear()
            if outermost:
                other_names.restore()
            restore()

        done.update(modules)
        scope.restore = restored
        return scope

    return patched


class _OtherNames:
    """Names that modules give to functions of the language, as in `cast = tl.cast`."""

    def __init__(self) -> None:
        self._functions = {
            id(value): (value, module, name)
            for module in (tl, tl.math)
            for name, value in vars(module).items()
            if callable(value)
        }
        self._changed: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
        """By the identity of a module's names: they, and what they stood for."""

    def replace(self, names: dict[str, Any]) -> bool:
        """Let them stand for what the language has now; whether these are the first names of a launch."""
        if id(names) in self._changed:
            return False
        outermost = not self._changed
        known = {name: value for name, value in names.items() if id(value) in self._functions}
        self._changed[id(names)] = (names, known)
        for name, value in known.items():
            original, module, own_name = self._functions[id(value)]
            names[name] = getattr(module, own_name) if value is original else value
        return outermost

    def restore(self) -> None:
        """At the end of a launch."""
        for names, known in self._changed.values():
            names.update(known)
        self._changed.clear()


def _by_name(find: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """NumPy's type of Triton's, remembered: many of Triton's types have no hash."""
    known: dict[str, Any] = {}

    def found(kind: Any) -> Any:
        dtype = known.get(kind.name)
        if dtype is None:
            dtype = known[kind.name] = find(kind)
        return dtype

    return found


def _block_type(make: Callable[..., None]) -> Callable[..., None]:
    """Of a shape and an element: what is derived from them, a name among it, is made once."""
    known: dict[Any, dict[str, Any]] = {}

    def made(self: Any, element_ty: Any, shape: Any) -> None:
        key = (element_ty.name, *[getattr(size, "value", size) for size in shape])
        if key in known:
            vars(self).update(known[key])
            self.element_ty = element_ty
        else:
            make(self, element_ty, shape)
            known[key] = dict(vars(self))

    return made


def _tensor(make: Callable[..., None]) -> Callable[..., None]:
    """Its shape in Triton's constants is made once for a type."""
    known: dict[str, dict[str, Any]] = {}

    def made(self: Any, handle: Any, type: Any) -> None:
        if type.name in known:
            vars(self).update(known[type.name])
            self.handle, self.type, self.dtype = handle, type, type.scalar
        else:
            make(self, handle, type)
            known[type.name] = {name: value for name, value in vars(self).items() if name != "handle"}

    return made


def _patch_builtin(package: Any, builder: Any, scope: Any) -> None:
    for name in _builtin_names(package):
        member = getattr(package, name)
        if tl.core.is_builtin(member):  # not patched yet
            interpreter._patch_attr(package, name, member, builder, scope)


@functools.cache
def _builtin_names(package: Any) -> tuple[str, ...]:
    return tuple(name for name, member in inspect.getmembers(package) if tl.core.is_builtin(member))


class _OneByOne(Exception):
    """The function asks for single values."""


def _by_rows(one_by_one: Callable[..., Any], at_once: Callable[..., Any]) -> Callable[..., Any]:
    """Whole rows at once: the interpreter calls a combining function on one element after the other.

    A row of 2048 takes half a second there. Compiled, the function combines neighbors until one value is
    left, and so it does here, on all pairs of all rows at once; the result is the same for a function that
    is written element by element. One that is not (an `if` on a value) is called as before.

    Of `ReduceOps.generic_reduce` and `ScanOps.generic_scan`, which stay for functions that ask for single
    values.
    """

    def reduced(self: Any, operands: Sequence[Any]) -> Any:
        token = _FOLDING.set(True)
        try:
            return at_once(self, operands)
        except Exception:  # whatever it is: if it is the kernel's own, the slow way meets it again
            pass
        finally:
            _FOLDING.reset(token)
        return one_by_one(self, operands)

    return reduced


def _truth(tensor: Any) -> bool:
    """Of a tensor in an `if`: as the interpreter has it, but many values have none where one is meant.

    Raises
    ------
    _OneByOne
        To `_by_rows`: the function that it folds with looks at a value.
    """
    values = tensor.handle.data
    if values.size == 1:
        return bool(values)
    if _FOLDING.get():
        raise _OneByOne
    return True


def _reduced(self: Any, operands: Sequence[Any]) -> list[Any]:
    shape = operands[0].handle.data.shape
    axis = None if self.axis is None else operator.index(self.axis) % len(shape)
    rows = [_rows(operand.handle.data, axis) for operand in operands]
    dtypes = [operand.dtype for operand in operands]
    while rows[0].shape[1] > 1:
        rows = _folded(self, rows, dtypes)
    outer = () if axis is None else shape[:axis] + shape[axis + 1 :]
    kept = tuple(1 if axis is None or each == axis else size for each, size in enumerate(shape))
    values = [row.reshape(kept if self.keep_dims else outer) for row in rows]
    return [self.to_tensor(value, dtype) for value, dtype in zip(values, dtypes, strict=True)]


def _rows(values: np.ndarray, axis: int | None) -> np.ndarray:
    """Two dimensions: what is combined lies along the second."""
    if axis is None:
        return values.reshape(1, -1)
    return np.moveaxis(values, axis, -1).reshape(-1, values.shape[axis])


def _folded(self: Any, rows: Sequence[np.ndarray], dtypes: Sequence[Any]) -> list[np.ndarray]:
    """Neighbours combined, in their order; the last one of an odd number waits."""
    pairs = rows[0].shape[1] // 2
    left, right = ([row[:, first : 2 * pairs : 2] for row in rows] for first in (0, 1))
    made = _combined(self, left, right, dtypes)
    return [np.concatenate([each, row[:, 2 * pairs :]], axis=1) for each, row in zip(made, rows, strict=True)]


def _combined(
    self: Any, left: Sequence[np.ndarray], right: Sequence[np.ndarray], dtypes: Sequence[Any]
) -> list[np.ndarray]:
    operands = [
        _flat(self, each, dtype) for side in (left, right) for each, dtype in zip(side, dtypes, strict=True)
    ]
    found = self.combine_fn.rewrite()(*operands)
    several = found if isinstance(found, tuple) else (found,)
    return [_values(each, dtype, left[0].shape) for each, dtype in zip(several, dtypes, strict=True)]


def _scanned(self: Any, operands: Sequence[Any]) -> list[Any]:
    """In steps of 1, 2, 4, ..., like a device: each value is combined with the one so far before it."""
    shape = operands[0].handle.data.shape
    axis = operator.index(self.axis) % len(shape)
    rows = [_rows(operand.handle.data, axis) for operand in operands]
    dtypes = [operand.dtype for operand in operands]
    step = 1
    while step < rows[0].shape[1]:
        before = [np.roll(row, step, axis=1) for row in rows]  # whole rows: a power of two
        made = _combined(self, before, rows, dtypes)
        rows = [
            np.concatenate([row[:, :step], new[:, step:]], axis=1)
            for row, new in zip(rows, made, strict=True)
        ]
        step *= 2
    moved = (*shape[:axis], *shape[axis + 1 :], shape[axis])
    values = [np.moveaxis(row.reshape(moved), -1, axis) for row in rows]
    return [self.to_tensor(value, dtype) for value, dtype in zip(values, dtypes, strict=True)]


def _flat(self: Any, values: np.ndarray, dtype: Any) -> Any:
    return self.to_tensor(values.reshape(-1), dtype)


def _values(found: Any, dtype: Any, shape: tuple[int, int]) -> np.ndarray:
    """Of a tensor that has a value for each pair, in the type that went in."""
    if not isinstance(found, tl.tensor) or found.dtype != dtype:
        raise _OneByOne
    values: np.ndarray = found.handle.data.reshape(shape)
    return values
