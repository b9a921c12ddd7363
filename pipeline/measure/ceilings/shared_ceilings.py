"""Ceilings that all checkouts of one user share on one machine. In: what they were measured for. Out: them.

They belong to a device, its circumstances and the code that measures, not to a checkout. Only figures that
nothing disturbed are shared: low ones would make every later result look good, in every checkout.
"""

import contextlib
import os
import platform
import stat
from pathlib import Path

from pipeline.backends.devices.device_ceilings import DeviceCeilings
from pipeline.records.environment import user_cache
from pipeline.records.errors import StoreError
from pipeline.records.record import digest, read_record, to_json
from pipeline.store.integrity import discard, is_damaged, unseal, write_sealed

FOLDER = Path("kernelmill", "ceilings")
KEPT = 32
"""Files: as many boots, sets of cores, devices and versions. Those that were written last stay."""


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
