"""What the device in this machine reaches: the name of a target in, its measured ceilings as text out."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from pipeline.backends.devices.device_ceilings import (
    DeviceCeilings,
    Level,
    at,
    level_bandwidth,
    level_of,
)
from pipeline.performance.quantities import rate, seconds
from pipeline.performance.roofline import per_second
from pipeline.records.configuration.hardware import Hardware
from pipeline.records.errors import ConfigError
from pipeline.records.record import Record

WRITE_ALLOCATE = 4 / 3
"""A triad by ordinary stores moves four arrays: the one it writes is fetched first."""
LAUNCHES = {
    "call": "an empty C++ kernel, through the path of every kernel",
    "region": "an empty parallel region of OpenMP",
    "stream": "an empty kernel, back to back in a stream",
    "graph": "an empty kernel as a node of a CUDA graph",
    "synchronised": "an empty kernel that the host waits for",
}
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


class ShownCeilings(Record, frozen=True, kw_only=True):
    """What is shown."""

    hardware: Hardware
    ceilings: DeviceCeilings
    circumstances: dict[str, str]
    file: Path
    """Where they are kept."""


def ceilings_text(measured: ShownCeilings) -> str:
    """The whole text."""
    found = measured.ceilings
    return "\n".join(
        [
            *_head(measured),
            "",
            "Bandwidth by working set (GB/s, 1 GB = 1e9 B; bytes of all arrays, as STREAM counts them)",
            *_bandwidths(found),
            "",
            "Levels of the memory (copy)",
            *_levels(found, measured.hardware),
            "",
            "Peaks",
            *_peaks(found, measured.hardware),
            "",
            "A call that does nothing",
            *(f"  {seconds(value):>9}  {LAUNCHES[name]}" for name, value in found.launch_seconds.items()),
        ]
    )


def _head(measured: ShownCeilings) -> Iterator[str]:
    facts = measured.hardware.facts
    cores = f", {facts['cores']} cores, {facts['threads']} threads" if "cores" in facts else ""
    yield f"{facts.get('model', measured.hardware.description)}{cores} ({measured.hardware.architecture})"
    circumstances = (
        f"{name} {value}" for name, value in sorted(measured.circumstances.items()) if name != "boot"
    )
    yield "; ".join(circumstances)
    yield f"kept in {measured.file}"
    for what in measured.ceilings.disturbed:
        yield f"{what}; on a quiet machine --again finds more, until then other checkouts do not share them"


def _bandwidths(found: DeviceCeilings) -> Iterator[str]:
    """One line per power of two; a series has a value where its working set lies within the line's."""
    plain = bool(found.triad_plain)
    plain_columns = f"{'triad, plain':>14}{'with allocate':>15}" if plain else ""
    yield f"  {'working set':>12}  {'level':<5}{'copy':>9}{'read':>9}{'triad':>9}{plain_columns}"
    last: Level | None = None
    for point in found.copy:
        size = point.working_set
        level = level_of(found.levels, size)
        mark = level.name if level != last else ""
        last = level
        line = f"  {_bytes(size):>12}  {mark:<5}"
        line += "".join(f"{_giga(at(series, size)):>9}" for series in (found.copy, found.read, found.triad))
        if plain:
            stored = at(found.triad_plain, size)
            line += f"{_giga(stored):>14}"
            line += "" if level.capacity else f"{_giga(WRITE_ALLOCATE * stored):>15}"
        yield line


def _levels(found: DeviceCeilings, hardware: Hardware) -> Iterator[str]:
    for level in found.levels:
        bandwidth = level_bandwidth(found.copy, found.levels, level)
        if bandwidth is None:
            yield f"  {level.name:<5} {_bytes(level.capacity or 0):>9}  no measured working set lies in it"
            continue
        size = _bytes(level.capacity) if level.capacity else "beyond"
        share = _share(hardware, "dram_bandwidth", bandwidth, "B/s") if level.capacity is None else ""
        yield f"  {level.name:<5} {size:>9}  {rate(bandwidth, 'B/s'):>11}{share}"


def _peaks(found: DeviceCeilings, hardware: Hardware) -> Iterator[str]:
    yield f"  {'dtype':<10}{'matrix product':>16}  {'library':<8}{'vector unit':>14}"
    for dtype in sorted(found.matrix_flops.keys() | found.vector_flops.keys()):
        unit = "OP/s" if dtype.startswith("int") else "FLOP/s"
        matrix, vector = found.matrix_flops.get(dtype), found.vector_flops.get(dtype)
        line = f"  {dtype:<10}{rate(matrix, unit) if matrix else '–':>16}"
        line += f"  {found.matrix_library.get(dtype, ''):<8}{rate(vector, unit) if vector else '–':>14}"
        line += _share(hardware, f"matrix_{dtype}", matrix, unit)
        line += _share(hardware, f"vector_{dtype}", vector, unit)
        yield line.rstrip()


def _share(hardware: Hardware, name: str, value: float | None, unit: str) -> str:
    """Of a declared peak, where there is one."""
    peak = hardware.peaks.get(name)
    if peak is None or value is None:
        return ""
    declared = per_second(name, peak)
    return f"  {value / declared:.0%} of the declared {name} ({rate(declared, unit)})"


def _bytes(size: int) -> str:
    scale, unit = next((each for each in _UNITS if size >= each[0]), (1, "B"))
    return f"{size / scale:.3g} {unit}"


def _giga(bandwidth: float) -> str:
    return f"{bandwidth / 1e9:.1f}"


Mode = Literal["known", "again", "afresh"]


def measured(name: str, mode: Mode, *, root: Path, conf: Path) -> ShownCeilings:
    """Known figures, or measured now; the device is held meanwhile.

    `again` keeps the better of old and new figures, `afresh` forgets the old ones.

    Raises
    ------
    ConfigError
        The hardware is not here, or not declared.
    """
    hardware, name_of_device = _device(name, conf)
    from pipeline.backends.devices.device_ceilings import DeviceCeilings
    from pipeline.backends.devices.device_lock import device_lock
    from pipeline.backends.devices.device_registry import device
    from pipeline.measure.ceilings import ceiling_measurement
    from pipeline.measure.comparison.bench import PRELOAD
    from pipeline.sandbox.processes.fork_server import ForkServer

    measure: Callable[[ForkServer, ceiling_measurement.CeilingsDevice], DeviceCeilings] = {
        "known": ceiling_measurement.measured,
        "again": ceiling_measurement.measured_again,
        "afresh": ceiling_measurement.measured_afresh,
    }[mode]
    kept = ceiling_measurement.CeilingsDevice(hardware.kind, name_of_device, root / "cache" / "ceilings")
    measurement = device(hardware.kind).measurement()
    server = ForkServer(preload=PRELOAD)
    try:
        with device_lock(measurement.lock_name(name_of_device)):
            found = measure(server, kept)
    finally:
        server.close()
    return ShownCeilings(
        hardware=hardware,
        ceilings=found,
        circumstances=measurement.circumstances(),
        file=ceiling_measurement.cache_path(kept),
    )


def _device(name: str, conf: Path) -> tuple[Hardware, str]:
    """A declared target as this machine has it, and the fingerprint under which results on it are kept."""
    from pipeline.plan.config.groups import check_option
    from pipeline.plan.config.options import declared_hardware
    from pipeline.plan.local_machine import fingerprint, read_machine, resolve

    check_option(conf, "hardware", name, name)
    machine = read_machine()
    declared = declared_hardware(conf)
    device = resolve(declared[name], declared, machine)
    if not device.present:
        found = machine.accelerator
        here = found.name if found else machine.cpu.facts.get("model", "a CPU")
        raise ConfigError(
            f"{name}: no {device.hardware.architecture} device on this machine (it has {here}); "
            "`kernelmill ceilings` measures what is here"
        )
    return device.hardware, fingerprint(device, machine)
