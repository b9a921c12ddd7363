"""Content-addressed entries: one folder per variant and stage, holding record.json and its files."""

import contextlib
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from pipeline.errors import StoreError
from pipeline.records.record import Record, read_record, to_json
from pipeline.store.atomic import new_folder
from pipeline.store.layout import entry_path
from pipeline.store.shared import RECORD, shared_store

__all__ = ["RECORD", "bring_entries", "find_entry", "new_entry", "put_record"]

R = TypeVar("R", bound=Record)


def bring_entries(root: Path, stage: str, entries: Iterable[str]) -> None:
    """Copy the entries that a shared store has and this one has not; without a shared store, none."""
    shared = shared_store()
    if shared is not None:
        shared.bring_entries(root, stage, entries)


def find_entry(root: Path, stage: str, entry: str, kind: type[R]) -> R | None:
    """The stored record, or None where there is none that can be read (a broken one is removed)."""
    folder = entry_path(root, stage, entry)
    if not folder.is_dir():
        return None
    try:
        return read_record(folder / RECORD, kind)
    except StoreError:
        shutil.rmtree(folder, ignore_errors=True)
        return None


@contextlib.contextmanager
def new_entry(root: Path, stage: str, entry: str) -> Iterator[Path]:
    """Yield a folder for the files; call `put_record` in it before the block ends.

    Then it is there, and in the shared store where there is one.
    """
    with new_folder(entry_path(root, stage, entry)) as folder:
        yield folder
        if not (folder / RECORD).is_file():
            raise StoreError(f"{stage} {entry}: no record was put before the entry was closed")
    shared = shared_store()
    if shared is not None:
        shared.put_entry(root, stage, entry)


def put_record(folder: Path, record: Record) -> None:
    """Write the record of an entry that is being made."""
    (folder / RECORD).write_bytes(to_json(record))
