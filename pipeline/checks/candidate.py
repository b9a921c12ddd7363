"""Runs in the candidate's process: map the buffers, load the artifact, launch when told, and answer.

In: `Load`, then `Call`s over a channel. Out: `Ready`, then `Done`, or `Refused`. Expected values never
come here; what the candidate wrote is read by the judge from the shared buffers.
"""

import faulthandler
import functools
import mmap
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import torch

from pipeline.backends.backend import CompileJob
from pipeline.backends.registry import backend
from pipeline.checks.buffers import Layout, view
from pipeline.checks.observation import Seen
from pipeline.records.compiled import Compiled
from pipeline.records.record import Record
from pipeline.workers.channel import Channel

TARGET = "pipeline.checks.candidate:serve"


class Load(Record, frozen=True, kw_only=True):
    """What to load, and where the buffers are."""

    job: CompileJob
    compiled: Compiled
    root: str
    folder: str
    arena: str
    """Path of the shared memory."""
    size: int
    device: Literal["cpu", "cuda"]


class Call(Record, frozen=True, kw_only=True):
    """Launch on these buffers."""

    layout: Layout
    threads: int
    """Of torch, and of kernels that share its OpenMP runtime."""


class Ready(Record, frozen=True, kw_only=True, tag="ready"):
    """The artifact is loaded."""


class Done(Record, frozen=True, kw_only=True, tag="done"):
    """The launch returned and its work is finished."""

    outputs: tuple[Seen, ...]


class Refused(Record, frozen=True, kw_only=True, tag="refused"):
    """Loading or launching raised."""

    reason: str


Answer = Ready | Done | Refused


def serve(channel: Channel) -> None:
    """Answer until the channel closes."""
    faulthandler.disable()  # how the process ends is told by the sandbox; the log is the candidate's
    load: Load = channel.receive(Load)
    descriptor = os.open(load.arena, os.O_RDWR)
    memory = mmap.mmap(descriptor, load.size)
    os.close(descriptor)
    try:
        launch = backend(load.job.variant.backend).load(
            load.job, load.compiled, Path(load.root), Path(load.folder)
        )
    except Exception as error:
        channel.send(_refused(error))
        return
    channel.send(Ready())
    run = _on_host if load.device == "cpu" else functools.partial(_on_device, load.device)
    while True:
        try:
            call: Call = channel.receive(Call)
        except EOFError:
            return
        torch.set_num_threads(call.threads)
        try:
            channel.send(Done(outputs=run(launch, memory, call.layout)))
        except Exception as error:
            channel.send(_refused(error))
            return


_Launch = Callable[[dict[str, torch.Tensor]], None]


def _on_host(launch: _Launch, memory: mmap.mmap, layout: Layout) -> tuple[Seen, ...]:
    tensors = {slot.name: view(memory, slot) for slot in layout.slots}
    addresses = {name: tensor.data_ptr() for name, tensor in tensors.items()}
    launch(tensors)
    return _seen(tensors, addresses, layout)


def _on_device(device: str, launch: _Launch, memory: mmap.mmap, layout: Layout) -> tuple[Seen, ...]:
    """The same layout in one allocation of the device: guards and poison go there and back with the rest."""
    host = torch.frombuffer(memory, dtype=torch.uint8, count=layout.size)
    there = torch.empty(layout.size, dtype=torch.uint8, device=device)
    there.copy_(host)
    tensors: dict[str, torch.Tensor] = {}
    for slot in layout.slots:
        span = there[slot.offset : slot.offset + max(slot.span, 1) * slot.itemsize]
        tensors[slot.name] = span.view(getattr(torch, slot.dtype)).as_strided(
            slot.shape, slot.strides, slot.offset // slot.itemsize
        )
    addresses = {name: tensor.data_ptr() for name, tensor in tensors.items()}
    launch(tensors)
    host.copy_(there)  # waits for the device
    return _seen(tensors, addresses, layout)


def _seen(tensors: dict[str, torch.Tensor], addresses: dict[str, int], layout: Layout) -> tuple[Seen, ...]:
    return tuple(
        Seen(
            name=slot.name,
            dtype=str(tensors[slot.name].dtype).removeprefix("torch."),
            shape=tuple(tensors[slot.name].shape),
            strides=tuple(tensors[slot.name].stride()),
            moved=tensors[slot.name].data_ptr() != addresses[slot.name],
        )
        for slot in layout.slots
        if slot.role == "output" and slot.name in tensors
    )


def _refused(error: Exception) -> Refused:
    """The traceback goes to the log; running out of memory is the sandbox's to tell."""
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        raise error
    traceback.print_exc()
    lines = str(error).strip().splitlines()
    return Refused(reason=f"{type(error).__name__}: {lines[0] if lines else ''}".strip(": ")[:500])
