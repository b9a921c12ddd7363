"""What every kind of device has to do, run in a process of its own: timers change its affinity and priority.

python -m tests.backends.devices.conforming module:Class CHECK
"""

import importlib
import sys
import tempfile
from pathlib import Path

from pipeline.backends.devices.device import Device, NotAvailable
from pipeline.backends.devices.device_ceilings import BASE


def timer(member: Device) -> None:
    """More work takes longer, gaps are left out, and results say what the clock is."""
    import torch

    for flush in (False, True):
        clock = member.measurement().timer(flush_cache=flush)
        clock.prepare()
        x = member.allocate(1 << 18, torch.float32)
        call = clock.recorded(x.exp)
        clock.settle(call, 0.01)
        repeats = 3 if flush else 20  # flushing a cache of 260 MiB takes 64 ms a call
        pairs = [(clock.batch(call, 1), clock.batch(call, 10)) for _ in range(repeats)]
        few, many = (min(seconds) for seconds in zip(*pairs, strict=True))
        assert many > 3 * few > 0
        assert clock.straight(call, 2) > 0
        latencies = clock.latencies(call, (0.02, 0.03))
        assert len(latencies) == 2
        assert 0 < min(latencies) < 0.02
        host = clock.host_seconds(call, 3)
        assert (host is None) == member.is_host
        facts = clock.facts()
        assert {"name", "timer"} <= facts.keys()
        assert all(isinstance(text, str) for text in facts.values())


def buffers(member: Device) -> None:
    """Memory is zeroed and where the device says; launches can be counted, or not at all."""
    import torch

    block = member.allocate(100, torch.float16)
    assert (block.dtype, block.numel(), block.device.type) == (torch.float16, 100, member.torch_device)
    assert not block.any()
    member.synchronize()
    counter = member.count_launches()
    assert counter is None or counter() == 0


def observation(member: Device) -> None:
    """What is not reported is absent with a reason; a call whose memory is measured is made once."""
    measurement = member.measurement()
    calls: list[int] = []
    measurement.peak_memory(lambda: calls.append(1))
    assert calls == [1]
    found = measurement.count_calls(lambda: len(calls))
    assert found is None or getattr(found, "values", None) or getattr(found, "reason", None)
    try:
        source = measurement.conditions()
    except NotAvailable as absent:
        assert str(absent)
    else:
        assert source.read().samples == 1
        assert all(source.lines().values())
        source.close()
    try:
        with measurement.energy_meter() as meter:
            assert meter.joules() <= meter.joules()
    except NotAvailable as absent:
        assert str(absent)
    assert all(measurement.circumstances().values())
    assert measurement.lock_name("fingerprint")
    with measurement.profiled():
        pass


def ceilings(member: Device) -> None:
    """Figures are positive; what is known stays, and products are added when they are asked for."""
    measurement = member.measurement()
    assert all(path.is_file() for path in measurement.ceiling_sources())
    with tempfile.TemporaryDirectory() as folder:
        first = measurement.ceilings(Path(folder), ("float32",), None)
        more = measurement.ceilings(Path(folder), ("float64",), first)
    for series in (first.copy, first.read, first.triad):
        assert all(point.bandwidth > 0 for point in series)
    assert first.levels[-1].capacity is None
    assert first.vector_flops["float32"] > 0
    assert {"float32", "float64"} <= more.matrix_flops.keys() == more.matrix_library.keys()
    assert more.copy == first.copy
    assert BASE not in more.parts or not more.parts[BASE]


def main(where: str, check: str) -> None:
    """Run one check on one kind of device."""
    module, _, name = where.partition(":")
    globals()[check](getattr(importlib.import_module(module), name)())


if __name__ == "__main__":
    main(*sys.argv[1:])
