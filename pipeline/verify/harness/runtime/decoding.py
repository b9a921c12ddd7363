"""Decodes arguments from shared memory, and writes results back into it.

In: plain values and slots from the judge. Out: tensors in the judge's memory; copies of the candidate's
results, with a description of each.
"""

import mmap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from pipeline.sandbox.observation import tensor_access
from pipeline.verify.harness.buffers import ALIGNMENT, Slot, view
from pipeline.verify.harness.messages import OutputState, Value
from pipeline.verify.harness.observers.allocations import GuardedAllocations

_MOST_ENUMERATED = 1 << 20  # elements whose addresses are listed one by one


def decode(value: Value, tensors: Mapping[str, torch.Tensor]) -> Any:
    """A plain value as the candidate gets it."""
    if isinstance(value, list):
        return [decode(each, tensors) for each in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"tensor": name, **rest} if not rest:
            return tensors[name]
        case {"tuple": items, **rest} if not rest:
            return tuple(decode(each, tensors) for each in items)
        case {"dtype": name, **rest} if not rest:
            return getattr(torch, name)
    return {key: decode(each, tensors) for key, each in value.items()}


def views(memory: mmap.mmap, slots: Iterable[Slot]) -> dict[str, torch.Tensor]:
    """Tensors by name: the slots themselves."""
    return {slot.name: view(memory, slot) for slot in slots}


def form_of(result: Any) -> tuple[str, list[Any]]:
    """`tensor`, `tuple`, `dict of loss, weights`, ... and all that is in it, as deep as it is nested."""
    if not _holds_others(result):
        return "tensor" if tensor_access.is_plain(result) else type(result).__name__, [result]
    if isinstance(result, dict):
        return f"dict of {', '.join(sorted(map(str, result)))}", list(leaves(result))
    return type(result).__name__, list(leaves(result))


def _holds_others(value: Any) -> bool:
    return isinstance(value, tuple | list | dict) and not isinstance(value, torch.Tensor)


def leaves(value: Any) -> Iterator[Any]:
    """What nested tuples, lists and dicts hold, in order; of a dict by its keys."""
    if not _holds_others(value):
        yield value
        return
    for each in (value[key] for key in sorted(value, key=str)) if isinstance(value, dict) else value:
        yield from leaves(each)


class ResultWriter:
    """Room in the shared memory that copies are put into, one after the other."""

    def __init__(self, memory: mmap.mmap, offset: int, size: int) -> None:
        self._bytes = np.frombuffer(memory, dtype=np.uint8)
        self._next, self._end = offset, offset + size

    def put(self, tensor: torch.Tensor) -> int | None:
        """Byte offset of a contiguous copy; None where there is no room."""
        content = tensor_access.content(tensor)
        offset = -(-self._next // ALIGNMENT) * ALIGNMENT
        if offset + content.size > self._end:
            return None
        self._bytes[offset : offset + content.size] = content
        self._next = offset + content.size
        return offset

    def holds(self, tensor: torch.Tensor, offset: int) -> bool:
        """Whether it is still what was put there."""
        content = tensor_access.content(tensor)
        return bool(np.array_equal(self._bytes[offset : offset + content.size], content))


def put_all(values: Sequence[Any], writer: ResultWriter) -> list[int | None]:
    """Copy all that are plain tensors, at once: before anything else looks at them."""
    with tensor_access.plainly():
        return [writer.put(value) if tensor_access.is_plain(value) else None for value in values]


def describe(  # noqa: PLR0913
    name: str,
    value: Any,
    offset: int | None,
    *,
    place: str,
    known: Mapping[str, torch.Tensor],
    allocations: GuardedAllocations,
) -> OutputState:
    """What came out; `place`: the kind of device of the inputs; `known`: inputs and parameters by name."""
    if not tensor_access.is_plain(value):
        return OutputState(name=name, kind=_kind(value))
    with tensor_access.plainly():
        there = tensor_access.device(value)
        start = tensor_access.region(value)[0] if tensor_access.numel(value) else None
        aliases = [
            other for other, tensor in known.items() if start and tensor_access.region(tensor)[0] == start
        ]
        return OutputState(
            name=name,
            kind="Tensor",
            dtype=str(tensor_access.dtype(value)).removeprefix("torch."),
            shape=tuple(tensor_access.shape(value)),
            strides=tuple(tensor_access.strides(value)),
            elsewhere="" if there.type == place else str(there),
            offset=offset,
            aliases=tuple(aliases),
            overlaps=overlaps(tuple(tensor_access.shape(value)), tuple(tensor_access.strides(value))),
            unwritten=allocations.unwritten(value),
        )


def overlaps(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether two elements have one address."""
    axes = sorted((stride, size) for size, stride in zip(shape, strides, strict=True) if size > 1)
    if 0 in shape or not axes:
        return False
    reach = 0
    for stride, size in axes:
        if stride <= reach:
            break
        reach += stride * (size - 1)
    else:
        return False
    if any(stride == 0 for stride, _ in axes):
        return True
    if np.prod([size for _, size in axes]) > _MOST_ENUMERATED:
        return True
    offsets = np.zeros(1, dtype=np.int64)
    for stride, size in axes:
        offsets = (offsets[:, None] + stride * np.arange(size)).ravel()
    return np.unique(offsets).size < offsets.size


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor) and type(value) is torch.Tensor:
        return str(tensor_access.layout(value))
    return type(value).__name__
