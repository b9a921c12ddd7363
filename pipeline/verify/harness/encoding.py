"""Encodes arguments as plain values and tensors, and places the tensors in shared memory.

In: arguments as a problem makes them. Out: `Encoded`: a tree of plain values that names its tensors, and
these by name (`input 0`, `input 1`, ... in order); `place` lays them out between guard bands.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from pipeline.records.record import Record
from pipeline.sandbox.models.model_problem import ProblemError
from pipeline.verify.harness.buffers import ALIGNMENT, GUARD_BYTES, Slot
from pipeline.verify.harness.messages import Value

PAGE = 4096  # bytes; regions begin on pages, so that protecting one does not touch another
_LINE = 64  # bytes of a cache line, and of the longest vector: code may count on that much
_PLAIN = (bool, int, float, str)


class Encoded(Record, frozen=True, kw_only=True, eq=False):
    """Arguments that can be sent."""

    values: list[Value]
    tensors: dict[str, torch.Tensor]

    def with_tensors(self, tensors: dict[str, torch.Tensor]) -> "Encoded":
        """The same arguments with other tensors of the same names."""
        return Encoded(values=self.values, tensors=tensors)

    def with_numbers(self, other: Callable[[float], float]) -> "Encoded":
        """The same arguments with another number for each float among them."""

        def changed(value: Value) -> Value:
            if isinstance(value, float):
                return other(value)
            if isinstance(value, list):
                return [changed(each) for each in value]
            return {key: changed(each) for key, each in value.items()} if isinstance(value, dict) else value

        return Encoded(values=[changed(value) for value in self.values], tensors=self.tensors)

    def copied(self) -> "Encoded":
        """With copies of the tensors that keep their strides."""
        return self.with_tensors({name: copy_of(tensor) for name, tensor in self.tensors.items()})

    def on(self, place: str) -> "Encoded":
        """With the tensors, or copies of them, on a device of torch's."""
        return self.with_tensors({name: tensor.to(place) for name, tensor in self.tensors.items()})

    def decode(self) -> list[Any]:
        """The arguments as they were."""
        return [_decode(value, self.tensors) for value in self.values]


def encode(arguments: list[Any], prefix: str, source: str) -> Encoded:
    """Plain values and named tensors; ProblemError for what a process cannot be sent."""
    tensors: dict[str, torch.Tensor] = {}
    known: dict[int, str] = {}

    def plain(value: Any) -> Value:
        if isinstance(value, torch.Tensor):
            if id(value) not in known:
                known[id(value)] = f"{prefix} {len(tensors)}"
                tensors[known[id(value)]] = _dense(value, source)
            return {"tensor": known[id(value)]}
        if value is None or isinstance(value, _PLAIN):
            return value
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, tuple):
            return {"tuple": [plain(each) for each in value]}
        if isinstance(value, list):
            return [plain(each) for each in value]
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {key: plain(each) for key, each in value.items()}
        raise ProblemError(
            f"{source}: holds a {type(value).__name__}, expected tensors, numbers, strings, lists of them"
        )

    return Encoded(values=[plain(value) for value in arguments], tensors=tensors)


def _dense(tensor: torch.Tensor, source: str) -> torch.Tensor:
    plain = tensor.layout is torch.strided and not tensor.is_quantized and tensor.device.type == "cpu"
    if not plain or tensor.element_size() > 8:
        what = f"{str(tensor.dtype).removeprefix('torch.')} {tensor.layout} on {tensor.device}"
        raise ProblemError(
            f"{source}: a tensor is {what}, expected a dense one on the CPU of at most 8 bytes"
        )
    return tensor.resolve_conj().resolve_neg()  # a kernel reads what is in memory


def _decode(value: Value, tensors: Mapping[str, torch.Tensor]) -> Any:
    if isinstance(value, list):
        return [_decode(each, tensors) for each in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"tensor"}:
        return tensors[value["tensor"]]
    if set(value) == {"tuple"}:
        return tuple(_decode(each, tensors) for each in value["tuple"])
    if set(value) == {"dtype"}:
        return getattr(torch, value["dtype"])
    return {key: _decode(each, tensors) for key, each in value.items()}


def copy_of(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides in memory of its own."""
    span = span_of(tuple(tensor.shape), tuple(tensor.stride()))
    flat = torch.empty(max(span, 1), dtype=tensor.dtype)
    made = flat.as_strided(tensor.shape, tensor.stride())
    distinct(made).copy_(distinct(tensor))
    return made


def distinct(tensor: torch.Tensor) -> torch.Tensor:
    """Each element of memory once: axes along which a tensor repeats itself are cut to one."""
    for axis, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[axis] > 1:
            tensor = tensor.narrow(axis, 0, 1)
    return tensor


def span_of(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements from the first to the last."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def place(
    tensors: Mapping[str, torch.Tensor], start: int, *, flush: bool = False, lead: int = 0
) -> tuple[tuple[Slot, ...], int]:
    """Slots with guard bands from a byte offset on, and the offset after them.

    A tensor keeps its storage offset, or has that of `lead` elements. `flush`: each tensor ends where a page
    does, as nearly as its alignment allows, and begins with its storage.
    """
    slots = tuple(_slots(tensors, start, flush=flush, lead=lead))
    return slots, -(-max([start, *(slot.end for slot in slots)]) // PAGE) * PAGE


def _slots(tensors: Mapping[str, torch.Tensor], position: int, *, flush: bool, lead: int) -> Iterator[Slot]:
    for name, tensor in tensors.items():
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        before = 0 if flush else lead or _lead(tensor)
        # The storage is aligned as an allocator of a GPU would align it.
        begin = -(-(position + GUARD_BYTES) // ALIGNMENT) * ALIGNMENT - GUARD_BYTES
        begin += before * tensor.element_size()
        if flush:
            size = -(-span_of(shape, strides) * tensor.element_size() // _LINE) * _LINE
            begin = -(-(position + GUARD_BYTES + size) // PAGE) * PAGE - size - GUARD_BYTES
        slot = Slot(
            name=name,
            role="input",
            dtype=str(tensor.dtype).removeprefix("torch."),
            shape=shape,
            strides=strides,
            start=begin,
            guard=GUARD_BYTES // tensor.element_size(),
            span=span_of(shape, strides),
            lead=before,
        )
        position = slot.end
        yield slot


def _lead(tensor: torch.Tensor) -> int:
    """The storage offset; a large one becomes one of the same alignment that fits into the guard."""
    offset, most = int(tensor.storage_offset()), GUARD_BYTES // tensor.element_size() // 2
    return offset if offset <= most else most - ALIGNMENT + offset % ALIGNMENT
