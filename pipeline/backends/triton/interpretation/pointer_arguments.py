"""Arguments of a kernel that have an address and are no tensors.

In: any object with `data_ptr()` and `dtype`, which a compiled kernel takes. Out: a `Pointer`, which Triton's
interpreter neither copies to the host nor back.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton.language as tl

from pipeline.backends.triton.triton_internals import interpreter, mangled_type


class Pointer:
    """An argument that has an address and a type, as compiled kernels take, and is no tensor."""

    def __init__(self, given: Any) -> None:
        self._given = given

    def converted(self) -> Any:
        """As a kernel sees it."""
        kind = tl.str_to_ty(mangled_type(self._given), None)
        handle = interpreter().TensorHandle(np.array([self._given.data_ptr()], dtype=np.uint64), kind)
        return tl.tensor(handle, kind)


def _with_pointers(method: Callable[..., Any]) -> Callable[..., Any]:
    """Of a launch: what copies tensors to the host and back leaves other pointers alone."""

    def copied(self: Any, *groups: Any) -> Any:
        return method(self, *(_wrapped(group) for group in groups))

    return copied


def _wrapped(group: Any) -> Any:
    if isinstance(group, dict):
        return {name: _wrapped_pointer(value) for name, value in group.items()}
    return [_wrapped_pointer(value) for value in group]


def _wrapped_pointer(value: Any) -> Any:
    is_tensor = isinstance(getattr(value, "base", value), torch.Tensor)
    return Pointer(value) if hasattr(value, "data_ptr") and not is_tensor else value


def install() -> None:
    """Let launches in the interpreter take them; called once, by `interpreter.mend`."""
    executor = interpreter().GridExecutor
    for name in ("_init_args_hst", "_restore_args_dev"):
        setattr(executor, name, _with_pointers(getattr(executor, name)))
