"""The memory that a candidate computes in, shared with the judge, who inspects it from outside.

In: a problem, padding of rows, a shift of all addresses. Out: a `Layout`, and an `Arena` that holds it.
Every tensor is between two guard bands; bands and the padding between rows hold a pattern, outputs
are poisoned. Patterns of inputs are NaN, so that reading beyond them shows in the result; those of
outputs differ from them, so that a value copied from one guard into another is seen.
"""

import fcntl
import mmap
import os
from types import TracebackType
from typing import Literal, Self

import torch

from pipeline.records.planning.problem import Problem
from pipeline.records.record import Record

GUARD_BYTES = 64 << 10  # a block of rows beyond the end still falls into it
ALIGNMENT = 256  # bytes; what allocators of GPUs give
LINE = 16  # bytes; what the start of a tensor is aligned to where its end matters more
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Slot(Record, frozen=True, kw_only=True):
    """One tensor's place: guard, span, guard."""

    name: str
    role: Literal["input", "output"]
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements."""
    start: int
    """Byte offset of the guard before it."""
    guard: int
    """Elements in each guard."""
    span: int
    """Elements from the first to the last, slack included."""
    lead: int = 0
    """Elements of the tensor's storage before its first one: its storage offset."""

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return int(getattr(torch, self.dtype).itemsize)

    @property
    def offset(self) -> int:
        """Byte offset of the first element."""
        return self.start + self.guard * self.itemsize

    @property
    def end(self) -> int:
        """Byte offset after the second guard."""
        return self.start + (2 * self.guard + self.span) * self.itemsize


class Layout(Record, frozen=True, kw_only=True):
    """The places of all tensors of one call."""

    slots: tuple[Slot, ...]
    size: int
    """Bytes."""


class Patterns(Record, frozen=True, kw_only=True):
    """16-bit words that are repeated over memory; 0x7ff8 to 0x7fff are NaN in every floating type."""

    input_guard: int
    output_guard: int
    poison: int


FIRST = Patterns(input_guard=0x7FFA, output_guard=0x7FFB, poison=0x7FFC)
AGAIN = Patterns(input_guard=0x7FFE, output_guard=0x3C5A, poison=0x4A4A)


def lay_out(problem: Problem, *, padded: bool, shift: int = 0, flush: bool = False) -> Layout:
    """Place every tensor; `padded` gives tensors of layout `row_strided` rows of odd, unequal strides.

    `flush`: each tensor ends where a page does, up to LINE - 1 bytes before it.
    """
    slots: list[Slot] = []
    position = shift
    for number, (name, tensor) in enumerate(problem.tensors.items()):
        shape = problem.shape(name)
        itemsize = getattr(torch, tensor.dtype).itemsize
        padding = 3 + 4 * number if padded and tensor.layout == "row_strided" else 0
        strides = _strides(shape, padding)
        guard = GUARD_BYTES // itemsize
        start = -(-(position + GUARD_BYTES) // ALIGNMENT) * ALIGNMENT - GUARD_BYTES
        if flush:
            size = -(-_span(shape, strides) * itemsize // LINE) * LINE
            start = -(-(position + GUARD_BYTES + size) // mmap.PAGESIZE) * mmap.PAGESIZE - size - GUARD_BYTES
        slot = Slot(
            name=name,
            role=tensor.role,
            dtype=tensor.dtype,
            shape=shape,
            strides=strides,
            start=start,
            guard=guard,
            span=_span(shape, strides),
        )
        slots.append(slot)
        position = slot.end
    return Layout(slots=tuple(slots), size=position)


def _strides(shape: tuple[int, ...], padding: int) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for axis in range(len(shape) - 1, -1, -1):
        strides.insert(0, step)
        step *= max(shape[axis], 1)
        if axis == len(shape) - 1 and len(shape) > 1:
            step += padding
    return tuple(strides)


def _span(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


class Arena:
    """Anonymous shared memory that another process of this user can map by its path."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.descriptor = os.memfd_create("kernelmill", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, size)
        # A candidate that cut the file would end its judge with a bus error.
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)
        self.path = f"/proc/{os.getpid()}/fd/{self.descriptor}"
        self._memory = mmap.mmap(self.descriptor, size)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.descriptor)  # the mapping goes with the last tensor that refers to it

    def view(self, slot: Slot) -> torch.Tensor:
        """The tensor in its declared dtype, shape and strides."""
        return view(self._memory, slot)

    def bits(self, slot: Slot) -> torch.Tensor:
        """The tensor as integers of the same size, so that NaN compares equal to itself."""
        return self.region(slot).as_strided(slot.shape, slot.strides, slot.guard)

    def copy(self, slot: Slot) -> torch.Tensor:
        """A contiguous copy outside of the shared memory."""
        return self.view(slot).clone(memory_format=torch.contiguous_format)

    def write(self, layout: Layout, inputs: dict[str, torch.Tensor], patterns: Patterns) -> None:
        """Fill guards and slack, write the inputs, poison the outputs."""
        for slot in layout.slots:
            guard, poison = words(slot, patterns)
            self.region(slot).fill_(guard)
            if slot.role == "input":
                self.view(slot).copy_(inputs[slot.name])
            else:
                self.bits(slot).fill_(poison)

    def trespass(self, slot: Slot, patterns: Patterns) -> str | None:
        """What was written outside a tensor, or None."""
        region = self.region(slot)
        guard, _ = words(slot, patterns)
        before, after = region[: slot.guard], region[slot.guard + slot.span :]
        for band, place in ((before, "before its start"), (after, "past its end")):
            changed = (band != guard).nonzero()
            if len(changed):
                nearest = int(changed[0]) + 1 if band is after else slot.guard - int(changed[-1])
                count = f"{len(changed)} element{'s' if len(changed) > 1 else ''}"
                return f"{slot.name}: {count} written {place}, the nearest {nearest} {place}"
        slack = _slack(region[slot.guard :], slot)
        if slack is not None:
            changed = (slack != guard).any(dim=-1).nonzero()
            if len(changed):
                rows = f"{len(changed)} rows was written, first after row {int(changed[0])}"
                return f"{slot.name}: the padding after {rows}"
        return None

    def region(self, slot: Slot) -> torch.Tensor:
        """Guards and span as integers."""
        count = 2 * slot.guard + slot.span
        return torch.frombuffer(self._memory, dtype=_INTEGERS[slot.itemsize], count=count, offset=slot.start)


def _slack(span: torch.Tensor, slot: Slot) -> torch.Tensor | None:
    """The elements between padded rows, one line per row but the last; None where there are none."""
    if len(slot.shape) < 2 or slot.span == 0:
        return None
    padding = slot.strides[-2] - slot.shape[-1]
    rows = (slot.span - slot.shape[-1]) // slot.strides[-2]
    if padding == 0 or rows == 0:
        return None
    return span.as_strided((rows, padding), (slot.strides[-2], 1), span.storage_offset() + slot.shape[-1])


def view(memory: mmap.mmap, slot: Slot) -> torch.Tensor:
    """A slot of mapped memory as the tensor that it declares, with a storage of its own."""
    # An empty tensor borrows a guard element, because a buffer of no elements has no address.
    flat = torch.frombuffer(
        memory,
        dtype=getattr(torch, slot.dtype),
        count=slot.lead + max(slot.span, 1),
        offset=slot.offset - slot.lead * slot.itemsize,
    )
    return flat.as_strided(slot.shape, slot.strides, slot.lead)


def words(slot: Slot, patterns: Patterns) -> tuple[int, int]:
    """Guard and poison of a slot as integers of its element's size."""
    guard = patterns.input_guard if slot.role == "input" else patterns.output_guard
    return repeat_word(guard, slot.itemsize), repeat_word(patterns.poison, slot.itemsize)


def repeat_word(word: int, itemsize: int) -> int:
    """A 16-bit word repeated to `itemsize` bytes (cut to one), as a signed integer."""
    raw = word.to_bytes(2, "little") * 4
    return int.from_bytes(raw[:itemsize], "little", signed=True)


def integers(tensor: torch.Tensor) -> torch.Tensor:
    """The bits of a contiguous tensor as integers of the same size."""
    return tensor.view(_INTEGERS[tensor.element_size()])
