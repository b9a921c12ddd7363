"""Tensors of a call on a device: the judge's slots with their guards, there and back.

In: shared memory and slots. Out: tensors on the device; after the call the shared memory holds what the
device's does, so that the judge finds changed inputs and writes outside of tensors as it does on the host.
"""

import mmap
from collections.abc import Sequence

import torch

from pipeline.backends.devices.device import Device
from pipeline.verify.harness.buffers import ALIGNMENT, Slot


class DeviceMemory:
    """One allocation per slot, in which it is as far from an aligned address as in the shared memory."""

    def __init__(self, memory: mmap.mmap, slots: Sequence[Slot], own: Device) -> None:
        self.slots = tuple(slots)
        self.tensors: dict[str, torch.Tensor] = {}
        self._own = own
        self._parts: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
        for slot in slots:
            shift, size = slot.start % ALIGNMENT, slot.end - slot.start
            here = torch.frombuffer(memory, dtype=torch.uint8, count=size, offset=slot.start)
            there = own.allocate(shift + size, torch.uint8)
            self._parts[slot.name] = here, there[shift:]
            offset = shift + slot.offset - slot.start
            flat = there[offset : offset + max(slot.span, 1) * slot.itemsize].view(getattr(torch, slot.dtype))
            tensor = flat.as_strided(slot.shape, slot.strides, offset // slot.itemsize)
            self.tensors[slot.name] = tensor
        self.fill()

    def fill(self) -> None:
        """Copy the slots to the device."""
        for here, there in self._parts.values():
            there.copy_(here)

    def fetch(self) -> None:
        """Copy the slots back; this waits for the stream that the call was made on, not for others."""
        for here, there in self._parts.values():
            here.copy_(there)

    def changed(self) -> set[str]:
        """Names of the slots, guards included, that hold something else than the shared memory by now."""
        self._own.synchronize()
        return {name for name, (here, there) in self._parts.items() if not torch.equal(there.cpu(), here)}
