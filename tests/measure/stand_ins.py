"""What stands for a measuring child, or for a device."""

import functools
import importlib
import os
import resource
from pathlib import Path

import msgspec

from pipeline.backends.devices.cpu.timer import CpuTimer
from pipeline.backends.devices.device_ceilings import (
    BASE,
    PRODUCTS,
    DeviceCeilings,
    Level,
    envelope,
    with_products,
)
from pipeline.backends.devices.device_registry import device
from pipeline.backends.devices.disturbance import Disturbance
from pipeline.measure.ceilings.ceiling_measurement import CeilingsRequest
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.sandbox.processes.channel import Channel

MB = 1 << 20
DEVICE = DeviceCeilings(
    copy=envelope([(MB, 100e9), (16 * MB, 80e9), (256 * MB, 20e9)]),
    read=envelope([(MB, 100e9), (16 * MB, 80e9), (256 * MB, 30e9)]),
    triad=envelope([(MB, 90e9), (16 * MB, 70e9), (256 * MB, 18e9)]),
    levels=(Level(name="L2", capacity=4 * MB), Level(name="L3", capacity=32 * MB), Level(name="DRAM")),
    matrix_flops={"float32": 200e9, "float16": 3e9},
    matrix_library={"float32": "torch", "float16": "torch"},
    vector_flops={"float32": 50e9},
    launch_seconds={"call": 2e-6, "region": 1e-6},
    parts=dict.fromkeys((BASE, *PRODUCTS), ()),
)
NOTES = Disturbance(others=0.4, stolen=0.0).notes()


def serve_fixed(channel: Channel) -> None:
    """Answers with figures that are known."""
    channel.receive()
    channel.send(DEVICE)


def serve_faster(channel: Channel) -> None:
    """Answers with a better figure."""
    channel.receive()
    channel.send(msgspec.structs.replace(DEVICE, vector_flops={"float32": 60e9}))


def serve_disturbed(channel: Channel) -> None:
    """Answers with figures that were measured beside other work."""
    channel.send(_asked(channel.receive(CeilingsRequest), NOTES))


def serve_asked(channel: Channel) -> None:
    """Measures the products that it is asked for, and the rest where that is not known."""
    channel.send(_asked(channel.receive(CeilingsRequest), ()))


def _asked(request: CeilingsRequest, notes: tuple[str, ...]) -> DeviceCeilings:
    empty = msgspec.structs.replace(DEVICE, matrix_flops={}, matrix_library={}, parts={BASE: notes})
    found = request.known or empty
    peaks = {name: (200e9, "torch") for name in request.products if name != "int8"}
    return msgspec.structs.replace(
        with_products(found, peaks), parts=found.parts | dict.fromkeys(request.products, notes)
    )


def serve_failing(channel: Channel) -> None:
    """Has no compiler."""
    raise RuntimeError("no C++ compiler")


def serve_call(channel: Channel) -> None:
    """Calls one function with the arguments that it is sent."""
    function, arguments = channel.receive()
    module, _, name = function.partition(":")
    channel.send(getattr(importlib.import_module(module), name)(*arguments))


def peaks() -> list[int | None]:
    """Bytes of host memory for arrays of 16, 16, 0, 8 and 24 MB, memory set up as in a measuring child."""
    _write_and_free(1)  # a forked process maps a library's pages again when it comes to them
    from pipeline.backends.devices.peak_memory import NEVER_TRIMMED, host_peak

    CpuTimer(flush_cache=False).prepare()  # the allocator keeps what is freed
    sizes = (16 * MB, 16 * MB, 0, 8 * MB, 24 * MB)
    return [
        host_peak(functools.partial(_write_and_free, size), trim_threshold=NEVER_TRIMMED).host_bytes
        for size in sizes
    ]


def _write_and_free(size: int) -> None:
    import numpy as np

    np.full(size, 1, dtype=np.uint8)


def few_and_many(kind: DeviceKind, flush: bool) -> tuple[float, float]:
    """Seconds of one product and of ten, by the timer of a kind of device."""
    import torch

    timer = device(kind).measurement().timer(flush_cache=flush)
    timer.prepare()
    x = torch.randn(512, 512, device=device(kind).torch_device)
    timer.settle(lambda: x @ x, 0.01)
    few = min(timer.batch(lambda: x @ x, 1) for _ in range(5))
    return few, min(timer.batch(lambda: x @ x, 10) for _ in range(5))


def recorded(kind: DeviceKind) -> tuple[int, int]:
    """How many additions a timer was asked for, and how many there were, in graphs of one and of several."""
    import torch

    timer = device(kind).measurement().timer(flush_cache=False)
    timer.prepare()
    x = torch.zeros(256, device=device(kind).torch_device)
    call = timer.recorded(lambda: x.add_(1))
    before, asked = int(x[0]), 0
    for calls in (1, 50, 177):
        timer.batch(call, calls)
        asked += calls
    return asked, int(x[0]) - before


def prepared() -> dict[str, object]:
    """What `prepare` and `settle` of the CPU's timer leave behind in a process of its own."""
    import torch

    timer = CpuTimer(flush_cache=False)
    timer.prepare()
    x = torch.randn(1 << 20)
    for _ in range(20):  # the heap finds its size
        timer.settle(x.exp, 0.001)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        x.exp()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    masks = [sorted(os.sched_getaffinity(int(task.name))) for task in Path("/proc/self/task").iterdir()]
    return {"pool": torch.get_num_threads(), "masks": masks, "faults": faults} | timer.facts()
