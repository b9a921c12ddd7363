"""Ceilings of the device in use: how fast it streams by size of the data, multiplies, adds, and is called.

Measured once per device and circumstances (boot, cores, clock limits, driver, versions) in a child of its
own, matrix products when their dtype is first needed. Kept under `cache/ceilings`; every result carries those
that bound it.

All checkouts of one user share them on one machine: they belong to a device, its circumstances and the code
that measures. Only figures that nothing disturbed are shared: low ones would make every later result look
good, in every checkout.
"""

import contextlib
import functools
import inspect
import os
import platform
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pipeline.backends.devices import device_ceilings
from pipeline.backends.devices.device_ceilings import BASE, PRODUCTS, DeviceCeilings, better
from pipeline.backends.devices.device_registry import device
from pipeline.backends.devices.disturbance import cpu_seconds, disturbance, load
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.environment import user_cache
from pipeline.records.errors import StoreError, WorkerError
from pipeline.records.record import Record, digest, digest_bytes, read_record, to_json
from pipeline.sandbox.processes.channel import Channel
from pipeline.sandbox.processes.fork_server import ChildEnded, ForkServer, Limits
from pipeline.store.integrity import discard, is_damaged, unseal, write_sealed
from pipeline.store.temporary import prefix, scratch_folder

TARGET = "pipeline.measure.ceilings.ceiling_measurement:serve"
TIME_LIMIT = 180.0  # seconds; it takes about 4
SOURCES = (Path(__file__), Path(device_ceilings.__file__))
"""What the figures come from besides the device's own code: checkouts in different states share none."""


FOLDER = Path("kernelmill", "ceilings")
KEPT = 32
"""Files: as many boots, sets of cores, devices and versions. Those that were written last stay."""


class CeilingsRequest(Record, frozen=True, kw_only=True):
    """What the child measures."""

    kind: DeviceKind
    folder: str
    """An empty folder for temporary files."""
    products: tuple[str, ...]
    """Dtypes of matrix products."""
    known: DeviceCeilings | None
    """What is left as it is; None: all but the products is measured as well."""


class CeilingsDevice(NamedTuple):
    """Whose ceilings, and where they are kept."""

    kind: DeviceKind
    name: str
    """Its fingerprint."""
    cache: Path


def measured(
    server: ForkServer, owner: CeilingsDevice, products: tuple[str, ...] = PRODUCTS
) -> DeviceCeilings:
    """The device's ceilings with the products of these dtypes (of `PRODUCTS`).

    They come from where they are kept if they were measured in the same circumstances; what is missing there
    is measured and added.
    """
    places = _places(owner)
    known = _kept(places.own)
    if known is not None and not known.lacks(products):
        return known
    known = _best((known, shared(places.shared)))
    if known is not None and not known.lacks(products):
        write_sealed(places.own, to_json(known))
        return known
    missing = known.lacks(products) if known is not None else products
    return _keep(_measure(server, owner, missing, known), places)


def measured_again(
    server: ForkServer, owner: CeilingsDevice, products: tuple[str, ...] = PRODUCTS
) -> DeviceCeilings:
    """Measure now; the better of old and new figures is kept.

    Raises
    ------
    WorkerError
        The measuring process failed.
    """
    places = _places(owner)
    found = _measure(server, owner, products, None)
    return _keep(_best((found, _kept(places.own), shared(places.shared))) or found, places)


def measured_afresh(server: ForkServer, owner: CeilingsDevice) -> DeviceCeilings:
    """Forget what is known, here and for other checkouts, and measure."""
    places = _places(owner)
    discard(places.own)
    unseal(places.own)
    forget(places.shared)
    return measured_again(server, owner)


def serve(channel: Channel) -> None:
    """Runs in the forked child."""
    request: CeilingsRequest = channel.receive(CeilingsRequest)
    measure = device(request.kind).measurement().ceilings
    before, own = load(), cpu_seconds()
    found = measure(Path(request.folder), request.products, request.known)
    beside = disturbance(before, load(), cpu_seconds() - own)
    parts = (*((BASE,) if request.known is None else ()), *request.products)
    notes = dict.fromkeys(parts, beside.notes() if beside else ())
    channel.send(msgspec.structs.replace(found, parts=found.parts | notes))


def cache_path(owner: CeilingsDevice) -> Path:
    """One file per device, its circumstances, and version of the code that measures."""
    return _places(owner).own


class _Places(NamedTuple):
    own: Path
    """The checkout's."""
    shared: Path | None


def _places(owner: CeilingsDevice) -> _Places:
    measurement = device(owner.kind).measurement()
    own = Path(inspect.getfile(type(measurement)))
    code = [digest_bytes(path.read_bytes()) for path in (*SOURCES, own, *measurement.ceiling_sources())]
    known = measurement.circumstances()
    identity: list[Any] = [owner.name, known, code]
    key = digest(identity)
    return _Places(own=owner.cache / key / "ceilings.json", shared=shared_path(key, known))


def _measure(
    server: ForkServer, owner: CeilingsDevice, products: tuple[str, ...], known: DeviceCeilings | None
) -> DeviceCeilings:
    """In a child; what is `known` stays as it is."""
    cache = cache_path(owner).parent.absolute()
    cache.mkdir(parents=True, exist_ok=True)
    with scratch_folder() as scratch, tempfile.TemporaryDirectory(prefix=prefix("files"), dir=cache) as files:
        request = CeilingsRequest(kind=owner.kind, folder=files, products=products, known=known)
        child = server.start(TARGET, limits=Limits(seconds=TIME_LIMIT), log=scratch / "log.txt")
        try:
            child.send(request)
            found: DeviceCeilings = child.receive(TIME_LIMIT, DeviceCeilings)
        except ChildEnded as ended:
            raise WorkerError(f"the ceilings of {owner.name} cannot be measured: {ended}") from ended
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


def shared_path(key: str, circumstances: dict[str, str]) -> Path | None:
    """Where the ceilings of this key are shared.

    None where the user has no folder for such files, and where the system does not tell its boot: machines
    may have one home folder, and what another one reaches could not be told from what this one does.
    """
    cache = user_cache()
    if cache is None or "boot" not in circumstances:
        return None
    return cache / FOLDER / f"{digest([platform.node(), key])}.json"


def shared(path: Path | None) -> DeviceCeilings | None:
    """What a checkout measured; None where nothing did, or what lies there is damaged or another user's."""
    if path is None or not _is_ours(path.parent) or is_damaged(path):
        return None
    try:
        return read_record(path, DeviceCeilings)
    except StoreError:  # absent, or written by another version
        return None


def share(path: Path | None, found: DeviceCeilings) -> None:
    """Keep figures for the other checkouts, if nothing disturbed them; a folder that is full or not ours is
    no error, because the checkout keeps its own."""
    if path is None or found.disturbed:
        return
    with contextlib.suppress(OSError, StoreError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_ours(path.parent):
            write_sealed(path, to_json(found))
            _drop_oldest(path.parent)


def forget(path: Path | None) -> None:
    """Share them no more."""
    if path is not None and _is_ours(path.parent):
        discard(path)
        unseal(path)


def _is_ours(folder: Path) -> bool:
    """Whether nobody else can have written there."""
    try:
        found = folder.stat()
    except OSError:
        return False
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _drop_oldest(folder: Path) -> None:
    """A boot leaves a file that no later one reads."""
    files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
    for path in files[:-KEPT]:
        discard(path)
        unseal(path)
