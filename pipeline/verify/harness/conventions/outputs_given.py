"""Runs in the candidate's process: maps the buffers, gives up its rights, loads and launches the artifact.

In: a `LoadRequest`, then `CallRequest`s over a channel. Out: `ConfinedReply`, `ReadyReply`, then
`CallReply`s, or `RefusedReply`. Expected values never enter this process; the judge reads outputs from the
shared buffers. Memory that a launch allocates through torch is poisoned like the outputs: allocators return
blocks that may hold the right answer of an earlier call, so unwritten parts would pass.
"""

import faulthandler
import functools
import mmap
import os
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from pipeline.backends.devices.device_registry import device
from pipeline.backends.registry import backend
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.sandbox.confinement.confine import confine
from pipeline.sandbox.processes.channel import Channel
from pipeline.verify.checks.call_observation import OutputState
from pipeline.verify.harness.buffers import Layout, view
from pipeline.verify.harness.in_place.messages import (
    CallReply,
    CallRequest,
    ConfinedReply,
    LoadRequest,
    ReadyReply,
    RefusedReply,
)
from pipeline.verify.harness.in_place.observer import Observer
from pipeline.verify.harness.memory_protection import fenced, protected

TARGET = "pipeline.verify.harness.conventions.outputs_given:serve"
_DISTURBANCES = (1 << 10, 1 << 14, 1 << 18)  # elements


def serve(channel: Channel) -> None:
    """Answer until the channel closes."""
    faulthandler.disable()  # the sandbox reports how the process ends; the log is the candidate's
    load: LoadRequest = channel.receive(LoadRequest)
    own = device(load.device)
    descriptor = os.open(load.arena, os.O_RDWR)
    memory = mmap.mmap(descriptor, load.size)
    os.close(descriptor)
    channel.send(ConfinedReply(isolation=confine(Path.cwd()), process=os.getpid()))
    member = backend(load.job.variant.backend)
    watch = Observer(own.count_launches() or member.count_launches(), threads=load.threads)
    try:
        launch = member.load(load.job, load.compiled, Path(load.root), Path(load.folder))
    except Exception as error:
        channel.send(refusal_of(error))
        return
    channel.send(ReadyReply())
    run = launch_on_host if own.is_host else functools.partial(launch_on_device, load.device)
    while True:
        try:
            call: CallRequest = channel.receive(CallRequest)
        except EOFError:
            return
        torch.set_num_threads(call.threads)
        try:
            seen = run(launch, memory, call, watch)
        except Exception as error:
            channel.send(refusal_of(error))
            return
        noticed = watch.noticed(inspect=call.inspect, native=own.is_host, faults=member.take_memory_faults())
        channel.send(CallReply(outputs=seen, noticed=noticed))


_Launch = Callable[[dict[str, torch.Tensor]], None]


def launch_on_host(
    launch: _Launch, memory: mmap.mmap, call: CallRequest, watch: Observer
) -> tuple[OutputState, ...]:
    """Launch on the mapped buffers themselves."""
    tensors = {slot.name: view(memory, slot) for slot in call.layout.slots}
    addresses = {name: tensor.data_ptr() for name, tensor in tensors.items()}
    kept = _disturb("cpu") if call.disturb else None
    inputs = [slot for slot in call.layout.slots if slot.role == "input"]
    outputs = _outputs(tensors, call.layout)
    shield = protected(memory, inputs) if call.protect else nullcontext()
    fence = fenced(memory, call.layout.slots) if call.fence else nullcontext()
    with shield, fence, watch.call(), Poisoned(outputs):
        launch(tensors)
    del kept
    return _seen(tensors, addresses, call.layout)


def launch_on_device(
    kind: DeviceKind, launch: _Launch, memory: mmap.mmap, call: CallRequest, watch: Observer
) -> tuple[OutputState, ...]:
    """The same layout in one allocation of the device: guards and poison go there and back with the rest."""
    layout, own = call.layout, device(kind)
    host = torch.frombuffer(memory, dtype=torch.uint8, count=layout.size)
    there = torch.empty(layout.size, dtype=torch.uint8, device=own.torch_device)
    there.copy_(host)
    tensors: dict[str, torch.Tensor] = {}
    for slot in layout.slots:
        span = there[slot.offset : slot.offset + max(slot.span, 1) * slot.itemsize]
        tensors[slot.name] = span.view(getattr(torch, slot.dtype)).as_strided(
            slot.shape, slot.strides, slot.offset // slot.itemsize
        )
    addresses = {name: tensor.data_ptr() for name, tensor in tensors.items()}
    kept = _disturb(own.torch_device) if call.disturb else None
    with watch.call(), Poisoned(_outputs(tensors, layout)):
        launch(tensors)
    host.copy_(there)  # waits for the stream that the launch was made on, not for others
    seen = _seen(tensors, addresses, layout)
    del kept
    if not call.settle:
        return seen
    own.synchronize()
    time.sleep(call.settle)
    changed = there.cpu() != host
    late = {slot.name for slot in layout.slots if bool(changed[slot.start : slot.end].any())}
    return tuple(_late(output) if output.name in late else output for output in seen)


def _outputs(tensors: dict[str, torch.Tensor], layout: Layout) -> list[torch.Tensor]:
    """As the judge poisoned them."""
    return [tensors[slot.name] for slot in layout.slots if slot.role == "output"]


def _late(output: OutputState) -> OutputState:
    return OutputState(
        name=output.name,
        dtype=output.dtype,
        shape=output.shape,
        strides=output.strides,
        moved=output.moved,
        changed_later=True,
    )


def _disturb(device: str) -> list[torch.Tensor]:
    """Takes memory that was free a moment ago, and fills it with other numbers."""
    return [torch.full((count,), float("nan"), device=device) for count in _DISTURBANCES]


def _seen(
    tensors: dict[str, torch.Tensor], addresses: dict[str, int], layout: Layout
) -> tuple[OutputState, ...]:
    return tuple(
        OutputState(
            name=slot.name,
            dtype=str(tensors[slot.name].dtype).removeprefix("torch."),
            shape=tuple(tensors[slot.name].shape),
            strides=tuple(tensors[slot.name].stride()),
            moved=tensors[slot.name].data_ptr() != addresses[slot.name],
        )
        for slot in layout.slots
        if slot.role == "output" and slot.name in tensors
    )


def refusal_of(error: Exception) -> RefusedReply:
    """The traceback goes to the log; running out of memory is the sandbox's to tell."""
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        raise error
    traceback.print_exc()
    lines = str(error).strip().splitlines()
    return RefusedReply(reason=f"{type(error).__name__}: {lines[0] if lines else ''}".strip(": ")[:500])


_UNINITIALISED = frozenset(
    {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}
)


class Poisoned(TorchFunctionMode):
    """Inside, tensors that torch makes without values hold the pattern that the outputs hold."""

    def __init__(self, outputs: Iterable[torch.Tensor]) -> None:
        super().__init__()
        self._word = next((word for word in map(_word, outputs) if word is not None), None)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if self._word is not None and getattr(func, "__name__", "") in _UNINITIALISED:
            _fill(made, self._word)
        return made


def _word(output: torch.Tensor) -> torch.Tensor | None:
    """The 16 bits that its first element repeats; None where it has fewer."""
    if not output.numel() or output.element_size() < 2:
        return None
    first = output.as_strided((1,), (1,), output.storage_offset())
    return first.view(torch.int16)[:1].clone()


def _fill(made: torch.Tensor, word: torch.Tensor) -> None:
    storage = made.untyped_storage()
    if storage.nbytes() < 2:
        return
    whole = torch.empty(0, dtype=torch.int16, device=made.device)
    whole.set_(storage, 0, (storage.nbytes() // 2,), (1,))
    whole.copy_(word.expand(len(whole)))
