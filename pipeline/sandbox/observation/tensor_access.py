"""Reads tensors safely where a candidate may have replaced PyTorch's methods or returns a fake tensor.

In: tensors. Out: their address, memory, bits. What is used here was taken from PyTorch before any candidate
was imported, and runs no candidate's code.
"""

import contextlib
import ctypes
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from pipeline.sandbox.torch_internals import (
    StorageBase,
    TensorBase,
    without_torch_dispatch,
    without_torch_function,
)

_Base: Any = TensorBase
_Storage: Any = StorageBase
_Tensor, _Parameter = torch.Tensor, torch.nn.Parameter
_to: Any = _Base.to
_resolved: Any = _Base.resolve_conj
_plain_calls: Any = without_torch_function
_no_dispatch: Any = without_torch_dispatch
_no_gradients: Any = torch.no_grad

address: Callable[[Any], int] = _Base.data_ptr
"""Of the first element."""
contiguous: Callable[[Any], torch.Tensor] = _Base.contiguous
numel: Callable[[Any], int] = _Base.numel
shape: Callable[[Any], tuple[int, ...]] = _Base.shape.__get__
strides: Callable[[Any], tuple[int, ...]] = _Base.stride
dtype: Callable[[Any], torch.dtype] = _Base.dtype.__get__
device: Callable[[Any], torch.device] = _Base.device.__get__
layout: Callable[[Any], torch.layout] = _Base.layout.__get__
itemsize: Callable[[Any], int] = _Base.element_size
requires_grad: Callable[[Any], bool] = _Base.requires_grad.__get__


@contextlib.contextmanager
def plainly() -> Iterator[None]:
    """Inside, PyTorch calls no Python code of tensor classes and modes, and records no gradients."""
    with _plain_calls(), _no_dispatch(), _no_gradients():
        yield


def is_plain(value: object) -> bool:
    """Whether it is a dense tensor itself, no subclass that answers as it likes."""
    return type(value) in (_Tensor, _Parameter) and layout(value) is torch.strided


def on_host(tensor: torch.Tensor) -> bool:
    """Whether its memory can be read here."""
    return device(tensor).type == "cpu"


def region(tensor: torch.Tensor) -> tuple[int, int]:
    """Address and bytes of the memory that the tensor is a view of."""
    storage = _Base.untyped_storage(tensor)
    return _Storage.data_ptr(storage), _Storage.nbytes(storage)


def storage_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """All of the memory that the tensor is a view of, as a tensor of bytes on its device."""
    whole = torch.empty(0, dtype=torch.uint8, device=device(tensor))
    return whole.set_(_Base.untyped_storage(tensor))


def memory(start: int, count: int) -> np.ndarray:
    """Bytes at an address of this process, without a copy."""
    raw: Any = (ctypes.c_uint8 * count).from_address(start)
    return np.frombuffer(raw, dtype=np.uint8)


def content(tensor: torch.Tensor) -> np.ndarray:
    """Bytes of the elements in order: a copy, unless they lie so on the host.

    What is no copy must not outlive the tensor that was given.
    """
    with plainly():
        dense = contiguous(_resolved(tensor if on_host(tensor) else _to(tensor, "cpu")))
        found = memory(address(dense), numel(dense) * itemsize(dense)) if numel(dense) else _NOTHING
        return found if dense is tensor else found.copy()


def digest(tensor: torch.Tensor) -> tuple[int, int]:
    """Number of bytes and a checksum of the elements: equal for equal bits in order."""
    found = content(tensor)
    return found.size, zlib.crc32(found.data)


def tensors_in(values: object) -> Iterator[torch.Tensor]:
    """Plain tensors in arguments and results: themselves, in sequences and mappings."""
    if is_plain(values):
        yield values  # type: ignore[misc]
    elif isinstance(values, list | tuple):
        for value in values:
            yield from tensors_in(value)
    elif isinstance(values, Mapping):
        for value in values.values():
            yield from tensors_in(value)
    elif type(values).__name__ == "TensorDescriptor":  # Triton's: a tensor with the shape of its blocks
        yield from tensors_in(values.base)  # type: ignore[attr-defined]


_NOTHING = np.empty(0, dtype=np.uint8)
