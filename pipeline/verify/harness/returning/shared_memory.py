"""The shared memory of one candidate, as its judge uses it: inputs go in, copies of the outputs come out.

In: slots and tensors. Out: which inputs changed, what was written around them, and copies of what came back.
Everything that the candidate's process says about places and shapes is checked before memory is read.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from pipeline.verify.harness.buffers import Arena, Slot, repeat_word
from pipeline.verify.harness.returning.encoding import distinct
from pipeline.verify.harness.returning.messages import Returned

_DTYPES = {
    str(value).removeprefix("torch."): value
    for value in vars(torch).values()
    if isinstance(value, torch.dtype)
}
_GUARD = 0x7FFF  # a NaN that is no pattern of other memory: what was read beyond an input shows in the result
_POISON = 0x7F  # repeated, a NaN in most floating types


class Board(Arena):
    """An arena that knows what it wrote."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._written: dict[str, tuple[Slot, torch.Tensor]] = {}

    def put(self, slots: Iterable[Slot], tensors: Mapping[str, torch.Tensor]) -> None:
        """Write tensors between guard bands, and remember all bytes."""
        self._written = {}
        for slot in slots:
            region = self._region(slot)
            region.fill_(repeat_word(_GUARD, slot.itemsize))
            if slot.span:
                distinct(self.view(slot)).copy_(distinct(tensors[slot.name]))
            self._written[slot.name] = (slot, region.clone())

    def poison(self, offset: int, size: int) -> None:
        """Let nothing of an earlier call be left where outputs will be copied to."""
        torch.frombuffer(self._memory, dtype=torch.uint8, count=size, offset=offset).fill_(_POISON)

    def changes(self) -> tuple[dict[str, torch.Tensor], str | None]:
        """Tensors that are not what was written, as they are now, and what was written around them."""
        mutated: dict[str, torch.Tensor] = {}
        trespass = None
        for name, (slot, before) in self._written.items():
            changed = self._region(slot) != before
            if not bool(changed.any()):
                continue
            inside = torch.zeros_like(changed)
            if slot.span:
                distinct(inside.as_strided(slot.shape, slot.strides, slot.guard)).fill_(True)
            if bool((changed & inside).any()):
                mutated[name] = self.copy(slot)
            outside = int((changed & ~inside).sum())
            if outside:
                trespass = trespass or f"{name}: {outside} elements around it were written"
        return mutated, trespass

    def read(self, returned: Returned, first: int) -> torch.Tensor | None:
        """A copy of an output that was left at or after a byte offset; None where none can be read."""
        dtype: Any = _DTYPES.get(returned.dtype)
        if dtype is None or returned.offset is None or any(size < 0 for size in returned.shape):
            return None
        count = math.prod(returned.shape)
        if returned.offset < first or returned.offset + count * dtype.itemsize > self.size:
            return None
        if count == 0:
            return torch.empty(returned.shape, dtype=dtype)
        flat = torch.frombuffer(self._memory, dtype=dtype, count=count, offset=returned.offset)
        return flat.clone().view(returned.shape)
