"""Reductions in Triton's interpreter by a function of the kernel: a method in, one that takes whole rows out.

The interpreter knows sums and extrema; any other function it calls on one element after the other: half a
second for a row of 2048. Compiled, the function combines neighbours side by side until one value is left. So
it does here, on all pairs of all rows at once, which is the same for what is written element by element. What
is not (an `if` on a value, which is allowed because a device sees one value there) goes the slow way.
"""

import contextvars
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton.language as tl

_FOLDING = contextvars.ContextVar("folding", default=False)
"""Whether a function for single values is at work on many."""


class _OneByOne(Exception):
    """The function asks for single values."""


def by_rows(one_by_one: Callable[..., Any]) -> Callable[..., Any]:
    """Of `ReduceOps.generic_reduce`, which stays for functions that ask for single values."""

    def reduced(self: Any, operands: Sequence[Any]) -> Any:
        token = _FOLDING.set(True)
        try:
            return _reduced(self, operands)
        except Exception:  # whatever it is: if it is the kernel's own, the slow way meets it again
            pass
        finally:
            _FOLDING.reset(token)
        return one_by_one(self, operands)

    return reduced


def truth(tensor: Any) -> bool:
    """Of a tensor in an `if`: as the interpreter has it, but many values have none where one is meant.

    Raises
    ------
    _OneByOne
        To `by_rows`: the function that it folds with looks at a value.
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
    count, length = rows[0].shape
    pairs = length // 2
    left = [_flat(self, row[:, 0 : 2 * pairs : 2], dtype) for row, dtype in zip(rows, dtypes, strict=True)]
    right = [_flat(self, row[:, 1 : 2 * pairs : 2], dtype) for row, dtype in zip(rows, dtypes, strict=True)]
    found = self.combine_fn.fn(*left, *right)
    several = found if isinstance(found, tuple) else (found,)
    made = [_values(each, dtype, (count, pairs)) for each, dtype in zip(several, dtypes, strict=True)]
    return [np.concatenate([each, row[:, 2 * pairs :]], axis=1) for each, row in zip(made, rows, strict=True)]


def _flat(self: Any, values: np.ndarray, dtype: Any) -> Any:
    return self.to_tensor(values.reshape(-1), dtype)


def _values(found: Any, dtype: Any, shape: tuple[int, int]) -> np.ndarray:
    """Of a tensor that has a value for each pair, in the type that went in."""
    if not isinstance(found, tl.tensor) or found.dtype != dtype:
        raise _OneByOne
    values: np.ndarray = found.handle.data.reshape(shape)
    return values
