"""Ceilings of the device in use: how fast it copies and reads by size of the data, multiplies and adds.

Measured once per device and boot, in a child of its own, kept under `cache/ceilings`; every result carries
those that bound it. A ceiling is the best of several samples: disturbances only lower it, so measuring again
and keeping the better figure brings it closer to the truth.
"""

import contextlib
import math
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from pipeline.errors import StoreError, WorkerError
from pipeline.records.hardware import BackendKind
from pipeline.records.profiled import Ceilings
from pipeline.records.record import Record, digest, digest_bytes, read_record, to_json
from pipeline.store.atomic import write_atomic
from pipeline.workers.channel import Channel
from pipeline.workers.sandbox import ChildEnded, ForkServer, Limits

TARGET = "pipeline.measure.ceilings:serve"
TIME_LIMIT = 120.0  # seconds; it takes about 2
SOURCES = ("ceilings.py", "ceilings.cpp", "ceilings_cpu.py", "ceilings_gpu.py")
LIBRARY = "ceilings.so"


class Point(Record, frozen=True, kw_only=True):
    """Bandwidth of one working set."""

    working_set: int
    """Bytes of all arrays that take part."""
    bandwidth: float
    """Bytes per second, read plus written."""


class DeviceCeilings(Record, frozen=True, kw_only=True):
    """What one device reaches."""

    copy: tuple[Point, ...]
    """By growing working set; the last is far larger than every cache."""
    read: tuple[Point, ...]
    matrix_flops: dict[str, float]
    """FLOP/s of the vendor library's matrix product, by dtype."""
    vector_flops: float
    """FLOP/s of independent fused multiply-adds in float32."""


class Traffic(Record, frozen=True, kw_only=True):
    """Compulsory bytes of one call."""

    read: float
    written: float


class Request(Record, frozen=True, kw_only=True):
    """What the child measures."""

    kind: BackendKind
    folder: str
    """Folder in which the compiled part is kept."""


def measured(server: ForkServer, kind: BackendKind, device: str, cache: Path) -> DeviceCeilings:
    """The device's ceilings, from the cache where they were measured since the machine started."""
    path = _cache_path(cache, device)
    try:
        return read_record(path, DeviceCeilings)
    except StoreError:  # absent, or written by another version
        return measured_again(server, kind, device, cache)


def measured_again(server: ForkServer, kind: BackendKind, device: str, cache: Path) -> DeviceCeilings:
    """Measure now; the better of old and new figures is kept.

    Raises
    ------
    WorkerError
        The measuring process failed.
    """
    path = _cache_path(cache, device)
    with tempfile.TemporaryDirectory(prefix="kernelmill-") as folder:
        log = Path(folder) / "log.txt"
        child = server.start(TARGET, limits=Limits(seconds=TIME_LIMIT), log=log)
        try:
            child.send(Request(kind=kind, folder=str(path.parent.absolute())))
            found: DeviceCeilings = child.receive(TIME_LIMIT, DeviceCeilings)
        except ChildEnded as ended:
            raise WorkerError(f"the ceilings of {device} cannot be measured: {ended}") from ended
        child.stop()
    with contextlib.suppress(StoreError):  # nothing to compare with
        found = better(found, read_record(path, DeviceCeilings))
    write_atomic(path, to_json(found))
    return found


def better(one: DeviceCeilings, other: DeviceCeilings) -> DeviceCeilings:
    """The higher figure of each pair."""
    dtypes = sorted(one.matrix_flops.keys() | other.matrix_flops.keys())
    return DeviceCeilings(
        copy=_higher(one.copy, other.copy),
        read=_higher(one.read, other.read),
        matrix_flops={
            dtype: max(one.matrix_flops.get(dtype, 0.0), other.matrix_flops.get(dtype, 0.0))
            for dtype in dtypes
        },
        vector_flops=max(one.vector_flops, other.vector_flops),
    )


def of_problem(device: DeviceCeilings, traffic: Traffic, dtype: str) -> Ceilings:
    """What bounds a problem of this traffic: its bytes are its working set."""
    size = traffic.read + traffic.written
    return Ceilings(
        copy_bandwidth=device.copy[-1].bandwidth,
        cache_bandwidth=_mixed(_at(device.copy, size), _at(device.read, size), traffic),
        read_bandwidth=device.read[-1].bandwidth,
        matrix_flops=device.matrix_flops[dtype],
        vector_flops=device.vector_flops,
    )


def beyond_caches(device: DeviceCeilings) -> DeviceCeilings:
    """What bounds calls that find nothing of their data in a cache."""
    return msgspec.structs.replace(device, copy=device.copy[-1:], read=device.read[-1:])


def serve(channel: Channel) -> None:
    """Runs in the forked child."""
    request: Request = channel.receive(Request)
    if request.kind == "cpu":
        from pipeline.measure.ceilings_cpu import measure
    else:
        from pipeline.measure.ceilings_gpu import measure
    channel.send(measure(Path(request.folder)))


def envelope(points: list[tuple[int, float]]) -> tuple[Point, ...]:
    """Points by growing working set, each at least as fast as all larger ones.

    A smaller working set cannot be slower to stream over; where the samples say so, something disturbed them.
    """
    best = 0.0
    found = []
    for size, bandwidth in sorted(points, reverse=True):
        best = max(best, bandwidth)
        found.append(Point(working_set=size, bandwidth=best))
    return tuple(reversed(found))


def _mixed(copy: float, read: float, traffic: Traffic) -> float:
    """Bandwidth of a mix of reads and writes.

    A copy of n bytes takes n / read + n / write seconds and 2 n / copy by definition, which gives the time of
    a written byte; a kernel that mostly reads (a matrix-vector product) may be faster than any copy.
    """
    second_per_read = 1 / max(read, copy)  # a disturbed sample apart, reading is never the slower
    second_per_write = max(2 / copy - second_per_read, 0.0)
    total = traffic.read + traffic.written
    return total / (traffic.read * second_per_read + traffic.written * second_per_write)


def _at(points: tuple[Point, ...], size: float) -> float:
    """Bandwidth at the largest measured working set that is not larger: never too low a ceiling."""
    smaller = [point for point in points if point.working_set <= size]
    return (smaller[-1] if smaller else points[0]).bandwidth


def _higher(one: tuple[Point, ...], other: tuple[Point, ...]) -> tuple[Point, ...]:
    both = {point.working_set: point.bandwidth for point in one}
    for point in other:
        both[point.working_set] = max(point.bandwidth, both.get(point.working_set, 0.0))
    return envelope(list(both.items()))


def _cache_path(cache: Path, device: str) -> Path:
    """One file per device, boot, and version of the code that measures."""
    here = Path(__file__).parent
    code = [digest_bytes((here / name).read_bytes()) for name in SOURCES]
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    identity: list[Any] = [device, boot, code]
    return cache / digest(identity) / "ceilings.json"


def sizes(smallest: int, largest: int) -> list[int]:
    """Powers of two between two working sets, both included."""
    low, high = math.ceil(math.log2(smallest)), math.ceil(math.log2(largest))
    return [1 << exponent for exponent in range(low, high + 1)]
