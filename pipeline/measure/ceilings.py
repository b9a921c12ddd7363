"""Ceilings of the device in use: how fast it streams by size of the data, multiplies, adds, and is called.

Measured once per device and circumstances (boot, cores, clock limits, driver, versions) in a child of its
own, kept under `cache/ceilings` and, where nothing disturbed them, for the user's other checkouts; every
result carries those that bound it.
"""

import os
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pipeline.errors import StoreError, WorkerError
from pipeline.measure.circumstances import circumstances
from pipeline.measure.device_ceilings import DeviceCeilings, better
from pipeline.measure.disturbance import disturbance, load
from pipeline.measure.shared_ceilings import forget, share, shared, shared_path
from pipeline.records.hardware import BackendKind
from pipeline.records.record import Record, digest, digest_bytes, read_record, to_json
from pipeline.store.owners import scratch_folder
from pipeline.store.seals import discard, is_damaged, unseal, write_sealed
from pipeline.workers.channel import Channel
from pipeline.workers.sandbox import ChildEnded, ForkServer, Limits

TARGET = "pipeline.measure.ceilings:serve"
TIME_LIMIT = 180.0  # seconds; it takes about 4
SOURCES = (
    "measure/ceilings.py",
    "measure/ceilings.cpp",
    "measure/ceilings_cpu.py",
    "measure/ceilings_gpu.py",
    "measure/device_ceilings.py",
    "measure/matrix_peaks.py",
    "measure/memory_levels.py",
    "measure/processor.py",
    "measure/timer.py",
    "measure/timer_cpu.py",
    "measure/timer_cuda.py",
    "backends/abi.py",
    "backends/cpp/compiler.py",
    "backends/cpp/launch.py",
)
"""What the figures come from, below `pipeline/`: checkouts of different states do not share them."""
LIBRARY = "ceilings.so"


class Request(Record, frozen=True, kw_only=True):
    """What the child measures."""

    kind: BackendKind
    folder: str
    """Folder in which the compiled part is kept."""


def measured(server: ForkServer, kind: BackendKind, device: str, cache: Path) -> DeviceCeilings:
    """The device's ceilings, from where they are kept if they were measured in the same circumstances."""
    places = _places(cache, kind, device)
    found = _kept(places.own)
    if found is not None:
        return found
    found = shared(places.shared)
    if found is None:
        return measured_again(server, kind, device, cache)
    write_sealed(places.own, to_json(found))
    return found


def measured_again(server: ForkServer, kind: BackendKind, device: str, cache: Path) -> DeviceCeilings:
    """Measure now; the better of old and new figures is kept.

    Raises
    ------
    WorkerError
        The measuring process failed.
    """
    places = _places(cache, kind, device)
    with scratch_folder() as folder:
        log = folder / "log.txt"
        child = server.start(TARGET, limits=Limits(seconds=TIME_LIMIT), log=log)
        try:
            child.send(Request(kind=kind, folder=str(places.own.parent.absolute())))
            found: DeviceCeilings = child.receive(TIME_LIMIT, DeviceCeilings)
        except ChildEnded as ended:
            raise WorkerError(f"the ceilings of {device} cannot be measured: {ended}") from ended
        child.stop()
    for known in (_kept(places.own), shared(places.shared)):
        if known is not None:
            found = better(found, known)
    write_sealed(places.own, to_json(found))
    share(places.shared, found)
    return found


def measured_afresh(server: ForkServer, kind: BackendKind, device: str, cache: Path) -> DeviceCeilings:
    """Forget what is known, here and for other checkouts, and measure."""
    places = _places(cache, kind, device)
    discard(places.own)
    unseal(places.own)
    forget(places.shared)
    return measured_again(server, kind, device, cache)


def serve(channel: Channel) -> None:
    """Runs in the forked child."""
    request: Request = channel.receive(Request)
    if request.kind == "cpu":
        from pipeline.measure.ceilings_cpu import measure
    else:
        from pipeline.measure.ceilings_gpu import measure
    before, own = load(), _computed()
    found = measure(Path(request.folder))
    beside = disturbance(before, load(), _computed() - own)
    channel.send(msgspec.structs.replace(found, disturbed=beside.notes() if beside else ()))


def cache_path(cache: Path, kind: BackendKind, device: str) -> Path:
    """One file per device, its circumstances, and version of the code that measures."""
    return _places(cache, kind, device).own


class _Places(NamedTuple):
    own: Path
    """The checkout's."""
    shared: Path | None


def _places(cache: Path, kind: BackendKind, device: str) -> _Places:
    project = Path(__file__).parents[1]
    code = [digest_bytes((project / name).read_bytes()) for name in SOURCES]
    known = circumstances(kind)
    identity: list[Any] = [device, known, code]
    key = digest(identity)
    return _Places(own=cache / key / "ceilings.json", shared=shared_path(key, known))


def _kept(path: Path) -> DeviceCeilings | None:
    """None where it is absent, damaged, or written by another version."""
    if is_damaged(path):
        return None
    try:
        return read_record(path, DeviceCeilings)
    except StoreError:
        return None


def _computed() -> float:
    """CPU seconds of this process and of those that it waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system
