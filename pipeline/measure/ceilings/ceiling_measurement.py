"""Ceilings of the device in use: how fast it streams by size of the data, multiplies, adds, and is called.

Measured once per device and circumstances (boot, cores, clock limits, driver, versions) in a child of its
own, matrix products when their dtype is first needed. Kept under `cache/ceilings` and, where nothing
disturbed them, for the user's other checkouts; every result carries those that bound it.
"""

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pipeline.backends.devices.device_ceilings import BASE, PRODUCTS, DeviceCeilings, better
from pipeline.backends.devices.disturbance import cpu_seconds, disturbance, load
from pipeline.backends.devices.machine_state import circumstances
from pipeline.measure.ceilings.shared_ceilings import forget, share, shared, shared_path
from pipeline.records.configuration.hardware import BackendKind
from pipeline.records.errors import StoreError, WorkerError
from pipeline.records.record import Record, digest, digest_bytes, read_record, to_json
from pipeline.sandbox.processes.channel import Channel
from pipeline.sandbox.processes.fork_server import ChildEnded, ForkServer, Limits
from pipeline.store.integrity import discard, is_damaged, unseal, write_sealed
from pipeline.store.temporary import scratch_folder

TARGET = "pipeline.measure.ceilings.ceiling_measurement:serve"
TIME_LIMIT = 180.0  # seconds; it takes about 4
SOURCES = (
    "measure/ceilings/ceiling_measurement.py",
    "measure/ceilings/ceilings.cpp",
    "measure/ceilings/cpu.py",
    "measure/ceilings/cuda.py",
    "measure/ceilings/device_ceilings.py",
    "measure/ceilings/matrix_peaks.py",
    "measure/ceilings/memory_levels.py",
    "measure/ceilings/processor.py",
    "measure/timers/timer.py",
    "measure/timers/cpu.py",
    "measure/timers/cuda.py",
    "backends/abi.py",
    "backends/cpp/compiler.py",
    "backends/cpp/loading.py",
)
"""What the figures come from, below `pipeline/`: checkouts of different states do not share them."""


class CeilingsRequest(Record, frozen=True, kw_only=True):
    """What the child measures."""

    kind: BackendKind
    folder: str
    """Folder in which the compiled part is kept."""
    products: tuple[str, ...]
    """Dtypes of matrix products."""
    known: DeviceCeilings | None
    """What is left as it is; None: all but the products is measured as well."""


class CeilingsDevice(NamedTuple):
    """Whose ceilings, and where they are kept."""

    kind: BackendKind
    name: str
    """Its fingerprint."""
    cache: Path


def measured(
    server: ForkServer, device: CeilingsDevice, products: tuple[str, ...] = PRODUCTS
) -> DeviceCeilings:
    """The device's ceilings with the products of these dtypes (of `PRODUCTS`).

    They come from where they are kept if they were measured in the same circumstances; what is missing there
    is measured and added.
    """
    places = _places(device)
    known = _kept(places.own)
    if known is not None and not known.lacks(products):
        return known
    known = _best((known, shared(places.shared)))
    if known is not None and not known.lacks(products):
        write_sealed(places.own, to_json(known))
        return known
    missing = known.lacks(products) if known is not None else products
    return _keep(_measure(server, device, missing, known), places)


def measured_again(
    server: ForkServer, device: CeilingsDevice, products: tuple[str, ...] = PRODUCTS
) -> DeviceCeilings:
    """Measure now; the better of old and new figures is kept.

    Raises
    ------
    WorkerError
        The measuring process failed.
    """
    places = _places(device)
    found = _measure(server, device, products, None)
    return _keep(_best((found, _kept(places.own), shared(places.shared))) or found, places)


def measured_afresh(server: ForkServer, device: CeilingsDevice) -> DeviceCeilings:
    """Forget what is known, here and for other checkouts, and measure."""
    places = _places(device)
    discard(places.own)
    unseal(places.own)
    forget(places.shared)
    return measured_again(server, device)


def serve(channel: Channel) -> None:
    """Runs in the forked child."""
    request: CeilingsRequest = channel.receive(CeilingsRequest)
    if request.kind == "cpu":
        from pipeline.measure.ceilings.cpu import measure
    else:
        from pipeline.backends.devices.cuda.ceilings import measure
    before, own = load(), cpu_seconds()
    found = measure(Path(request.folder), request.products, request.known)
    beside = disturbance(before, load(), cpu_seconds() - own)
    parts = (*((BASE,) if request.known is None else ()), *request.products)
    notes = dict.fromkeys(parts, beside.notes() if beside else ())
    channel.send(msgspec.structs.replace(found, parts=found.parts | notes))


def cache_path(device: CeilingsDevice) -> Path:
    """One file per device, its circumstances, and version of the code that measures."""
    return _places(device).own


class _Places(NamedTuple):
    own: Path
    """The checkout's."""
    shared: Path | None


def _places(device: CeilingsDevice) -> _Places:
    project = Path(__file__).parents[2]
    code = [digest_bytes((project / name).read_bytes()) for name in SOURCES]
    known = circumstances(device.kind)
    identity: list[Any] = [device.name, known, code]
    key = digest(identity)
    return _Places(own=device.cache / key / "ceilings.json", shared=shared_path(key, known))


def _measure(
    server: ForkServer, device: CeilingsDevice, products: tuple[str, ...], known: DeviceCeilings | None
) -> DeviceCeilings:
    """In a child; what is `known` stays as it is."""
    request = CeilingsRequest(
        kind=device.kind,
        folder=str(cache_path(device).parent.absolute()),
        products=products,
        known=known,
    )
    with scratch_folder() as folder:
        child = server.start(TARGET, limits=Limits(seconds=TIME_LIMIT), log=folder / "log.txt")
        try:
            child.send(request)
            found: DeviceCeilings = child.receive(TIME_LIMIT, DeviceCeilings)
        except ChildEnded as ended:
            raise WorkerError(f"the ceilings of {device.name} cannot be measured: {ended}") from ended
        child.stop()
    return found


def _keep(found: DeviceCeilings, places: _Places) -> DeviceCeilings:
    write_sealed(places.own, to_json(found))
    share(places.shared, found)
    return found


def _best(each: Iterable[DeviceCeilings | None]) -> DeviceCeilings | None:
    """The better figures of all that there are; None where there are none."""
    there = [ceilings for ceilings in each if ceilings is not None]
    return functools.reduce(better, there) if there else None


def _kept(path: Path) -> DeviceCeilings | None:
    """None where it is absent, damaged, or written by another version."""
    if is_damaged(path):
        return None
    try:
        return read_record(path, DeviceCeilings)
    except StoreError:
        return None
