"""Ceilings of the device in use: how fast it streams by size of the data, multiplies, adds, and is called.

Measured once per device and circumstances (boot, cores, clock limits, driver, versions) in a child of its own
and kept under `cache/ceilings`; every result carries those that bound it.
"""

import contextlib
from pathlib import Path
from typing import Any

from pipeline.errors import StoreError, WorkerError
from pipeline.measure.circumstances import circumstances
from pipeline.measure.device_ceilings import DeviceCeilings, better
from pipeline.records.hardware import BackendKind
from pipeline.records.record import Record, digest, digest_bytes, read_record, to_json
from pipeline.store.owners import scratch_folder
from pipeline.store.seals import is_damaged, write_sealed
from pipeline.workers.channel import Channel
from pipeline.workers.sandbox import ChildEnded, ForkServer, Limits

TARGET = "pipeline.measure.ceilings:serve"
TIME_LIMIT = 180.0  # seconds; it takes about 4
SOURCES = (
    "ceilings.py",
    "ceilings.cpp",
    "ceilings_cpu.py",
    "ceilings_gpu.py",
    "device_ceilings.py",
    "matrix_peaks.py",
    "memory_levels.py",
)
LIBRARY = "ceilings.so"


class Request(Record, frozen=True, kw_only=True):
    """What the child measures."""

    kind: BackendKind
    folder: str
    """Folder in which the compiled part is kept."""


def measured(server: ForkServer, kind: BackendKind, device: str, cache: Path) -> DeviceCeilings:
    """The device's ceilings, from the cache where they were measured in the same circumstances."""
    path = cache_path(cache, kind, device)
    if is_damaged(path):
        return measured_again(server, kind, device, cache)
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
    path = cache_path(cache, kind, device)
    with scratch_folder() as folder:
        log = folder / "log.txt"
        child = server.start(TARGET, limits=Limits(seconds=TIME_LIMIT), log=log)
        try:
            child.send(Request(kind=kind, folder=str(path.parent.absolute())))
            found: DeviceCeilings = child.receive(TIME_LIMIT, DeviceCeilings)
        except ChildEnded as ended:
            raise WorkerError(f"the ceilings of {device} cannot be measured: {ended}") from ended
        child.stop()
    if not is_damaged(path):
        with contextlib.suppress(StoreError):  # nothing to compare with
            found = better(found, read_record(path, DeviceCeilings))
    write_sealed(path, to_json(found))
    return found


def serve(channel: Channel) -> None:
    """Runs in the forked child."""
    request: Request = channel.receive(Request)
    if request.kind == "cpu":
        from pipeline.measure.ceilings_cpu import measure
    else:
        from pipeline.measure.ceilings_gpu import measure
    channel.send(measure(Path(request.folder)))


def cache_path(cache: Path, kind: BackendKind, device: str) -> Path:
    """One file per device, its circumstances, and version of the code that measures."""
    here = Path(__file__).parent
    code = [digest_bytes((here / name).read_bytes()) for name in SOURCES]
    identity: list[Any] = [device, circumstances(kind), code]
    return cache / digest(identity) / "ceilings.json"
