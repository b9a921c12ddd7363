"""Content-addressed entries: one folder per variant and stage, holding record.json and its files, sealed."""

import contextlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from pipeline.records.errors import StoreError
from pipeline.records.layout import entry_path
from pipeline.records.record import Record, read_record, to_json
from pipeline.store.atomic import new_folder
from pipeline.store.integrity import damage, discard, seal_folder
from pipeline.store.shared_store import RECORD, shared_store

__all__ = ["RECORD", "bring_entries", "find_entry", "new_entry", "put_record"]

R = TypeVar("R", bound=Record)


def bring_entries(root: Path, stage: str, entries: Iterable[str]) -> None:
    """Copy the entries that a shared store has and this one has not; without a shared store, none."""
    shared = shared_store()
    if shared is not None:
        shared.bring_entries(root, stage, entries)


def find_entry(root: Path, stage: str, entry: str, kind: type[R]) -> R | None:
    """The stored record, or None where there is none that is whole (a damaged one is removed, and named)."""
    folder = entry_path(root, stage, entry)
    if not folder.is_dir() or remove_damaged(root, stage, entry):
        return None
    try:
        return read_record(folder / RECORD, kind)
    except StoreError:  # written by another version
        discard(folder)
        return None


def remove_damaged(root: Path, stage: str, entry: str) -> bool:
    """Whether an entry was there and not as it was written; then it is gone now, and the user knows."""
    folder = entry_path(root, stage, entry)
    found = damage(folder) if folder.is_dir() else None
    if found is None:
        return False
    print(f"{folder}: damaged ({found}), made again", file=sys.stderr)
    discard(folder)
    return True


def require_entry(root: Path, stage: str, entry: str, output: Path) -> None:
    """See that an entry of an earlier stage is whole before its files are used.

    Raises
    ------
    StoreError
        It is not: it and the `output` that names it are gone, so that the next run makes both again.
    """
    folder = entry_path(root, stage, entry)
    if folder.is_dir() and not remove_damaged(root, stage, entry):
        return
    discard(output)
    raise StoreError(f"{folder}: missing or damaged: run again, and {stage} makes it again")


@contextlib.contextmanager
def new_entry(root: Path, stage: str, entry: str) -> Iterator[Path]:
    """Yield a folder for the files; call `put_record` in it before the block ends.

    Then it is there, and in the shared store where there is one.
    """
    with new_folder(entry_path(root, stage, entry)) as folder:
        yield folder
        if not (folder / RECORD).is_file():
            raise StoreError(f"{stage} {entry}: no record was put before the entry was closed")
        seal_folder(folder)
    shared = shared_store()
    if shared is not None:
        shared.put_entry(root, stage, entry)


def put_record(folder: Path, record: Record) -> None:
    """Write the record of an entry that is being made."""
    (folder / RECORD).write_bytes(to_json(record))
