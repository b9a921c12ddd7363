"""Runs in the candidate's process: loads a variant of a declared kernel, and launches it.

In: a `DeclaredKernel`, then `KernelCall`s. Out: `ReadyReply`, `CallReply` or `RefusedReply`. The judge reads
outputs from the shared buffers that the kernel computes in.
"""

import mmap
import time
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import torch

from pipeline.backends.devices.device import Device
from pipeline.backends.devices.device_registry import device
from pipeline.backends.registry import backend
from pipeline.sandbox.observation import tensor_access
from pipeline.verify.harness.buffers import view
from pipeline.verify.harness.messages import (
    CallReply,
    DeclaredKernel,
    KernelCall,
    OutputState,
    ReadyReply,
    RefusedReply,
    Request,
)
from pipeline.verify.harness.observer import Observer, TritonRuns
from pipeline.verify.harness.runtime.device_memory import DeviceMemory
from pipeline.verify.harness.runtime.memory_protection import fenced, protected
from pipeline.verify.harness.runtime.refusal import refuse

if TYPE_CHECKING:
    from pipeline.backends.backend import Launch

_DISTURBANCES = (1 << 10, 1 << 14, 1 << 18)  # elements
_pause = time.sleep
Watching = Callable[[], AbstractContextManager[None]]
"""Inside, code of the candidate runs."""


class OutputsGiven:
    """One variant: its launcher, and who watches it."""

    def __init__(self, kernel: DeclaredKernel, memory: mmap.mmap) -> None:
        self._kernel = kernel
        self._device = device(kernel.device)
        self._memory = memory
        self._backend = backend(kernel.job.variant.backend)
        count = self._backend.count_launches()
        runs: TritonRuns = "interpreted" if self._device.is_host else "compiled"
        self._observer = Observer(
            Path(kernel.root) / kernel.job.implementation.source,
            triton="absent" if count is None else runs,  # who launches nothing itself has no such kernels
            backends=(self._backend,),
            count_launches=self._device.count_launches() or count,
            has_driver=not self._device.is_host,
        )
        self._observer.settle_pools(kernel.threads)
        self._launch: Launch | None = None

    def load(self) -> ReadyReply | RefusedReply:
        """Load the artifact."""
        try:
            with self._observer.watching():
                self._launch = self._load()
        except BaseException as error:
            return refuse(error, "load")
        return ReadyReply()

    def _load(self) -> "Launch":
        kernel, folder = self._kernel, Path(self._kernel.folder)
        if kernel.detector is None:
            return self._backend.load(kernel.job, kernel.compiled, Path(kernel.root), folder)
        return self._backend.load_watched(kernel.job, folder, Path(kernel.detector), Path.cwd())

    def answer(self, request: Request) -> CallReply | RefusedReply:
        """Launch it."""
        assert isinstance(request, KernelCall)
        assert self._launch is not None
        observer = self._observer
        torch.set_num_threads(request.threads)
        buffers = self._buffers(request)
        observer.allocations.next_call(request.poison)
        observer.begin(buffers.inputs(), seed=zlib.crc32(request.nonce.encode()), suppress=False)
        try:
            outputs = buffers.call(self._launch, observer.watching)
        except BaseException as error:
            return refuse(error, "call", request.nonce)
        plain = [tensor for tensor in buffers.outputs().values() if tensor_access.is_plain(tensor)]
        observed = observer.end(plain, inspect=request.inspect)
        return CallReply(nonce=request.nonce, outputs=outputs, observed=observed)

    def _buffers(self, request: KernelCall) -> "MappedBuffers | DeviceBuffers":
        if self._device.is_host:
            return MappedBuffers(self._memory, request)
        return DeviceBuffers(self._memory, request, self._device)


class _Buffers:
    """The tensors of one call."""

    def __init__(self, request: KernelCall, tensors: dict[str, torch.Tensor]) -> None:
        self._request = request
        self._tensors = tensors
        self._places = {name: tensor.data_ptr() for name, tensor in tensors.items()}

    def inputs(self) -> list[torch.Tensor]:
        """In the order of the layout."""
        return [self._tensors[slot.name] for slot in self._request.layout.slots if slot.role == "input"]

    def outputs(self) -> dict[str, torch.Tensor]:
        """As they are now; without those that the candidate took away."""
        slots = self._request.layout.slots
        names = [slot.name for slot in slots if slot.role == "output"]
        return {name: self._tensors[name] for name in names if name in self._tensors}

    def _states(self) -> tuple[OutputState, ...]:
        return tuple(
            OutputState(
                name=name,
                dtype=str(tensor.dtype).removeprefix("torch."),
                shape=tuple(tensor.shape),
                strides=tuple(tensor.stride()),
                moved=tensor.data_ptr() != self._places[name],
            )
            for name, tensor in self.outputs().items()
        )


class MappedBuffers(_Buffers):
    """The tensors of one call, in the shared memory itself."""

    def __init__(self, memory: mmap.mmap, request: KernelCall) -> None:
        super().__init__(request, {slot.name: view(memory, slot) for slot in request.layout.slots})
        self._memory = memory

    def call(self, launch: "Launch", watching: Watching) -> tuple[OutputState, ...]:
        """Launch, and say what the outputs are called then."""
        request, slots = self._request, self._request.layout.slots
        kept = _disturb("cpu") if request.disturb else None
        inputs = [slot for slot in slots if slot.role == "input"]
        shield = protected(self._memory, inputs) if request.protected else nullcontext()
        fence = fenced(self._memory, slots) if request.fenced else nullcontext()
        with shield, fence, watching():
            launch(self._tensors)
        del kept
        return self._states()


class DeviceBuffers(_Buffers):
    """The tensors of one call, on a device."""

    def __init__(self, memory: mmap.mmap, request: KernelCall, own: Device) -> None:
        self._device = own
        self._there = DeviceMemory(memory, request.layout.slots, own)
        super().__init__(request, self._there.tensors)

    def call(self, launch: "Launch", watching: Watching) -> tuple[OutputState, ...]:
        """Launch, bring everything back, and look at it a second time where that is asked for."""
        request = self._request
        kept = _disturb(self._device.torch_device) if request.disturb else None
        with watching():
            launch(self._tensors)
        self._there.fetch()
        states = self._states()
        del kept
        if not request.settle:
            return states
        _pause(request.settle)
        late = self._there.changed()
        return tuple(msgspec.structs.replace(state, changed_later=state.name in late) for state in states)


def _disturb(device: str) -> list[torch.Tensor]:
    """Takes memory that was free a moment ago, and fills it with other numbers."""
    return [torch.full((count,), float("nan"), device=device) for count in _DISTURBANCES]
