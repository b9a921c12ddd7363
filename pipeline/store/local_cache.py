"""What could be computed again and is kept: a record with files in, the same out later, under its key.

An entry like those of the variants, but it is never shared, and without its seal it is not believed: nothing
but time is lost with it.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from pipeline.records.errors import StoreError
from pipeline.records.layout import entry_path
from pipeline.records.record import read_record
from pipeline.store.atomic import new_folder
from pipeline.store.entries import RECORD, put_record, remove_damaged
from pipeline.store.integrity import SEAL, discard, seal_folder


class Keyed(Protocol):
    """A record that says what it is kept under."""

    @property
    def key(self) -> str: ...  # noqa: D102


K = TypeVar("K", bound=Keyed)


def find_kept(root: Path, stage: str, key: str, kind: type[K]) -> K | None:
    """The record, or None where there is none that is whole and of this key (such a one is removed)."""
    folder = entry_path(root, stage, key)
    if not folder.is_dir() or remove_damaged(root, stage, key):
        return None
    if (folder / SEAL).is_file():
        try:
            record = read_record(folder / RECORD, kind)
        except StoreError:
            record = None
        if record is not None and record.key == key:
            return record
    drop_kept(root, stage, key)
    return None


def drop_kept(root: Path, stage: str, key: str) -> None:
    """Remove what is not what its name says, and say so."""
    folder = entry_path(root, stage, key)
    print(f"{folder}: damaged (not what its name says), made again", file=sys.stderr)
    discard(folder)


def keep(root: Path, stage: str, record: Keyed, files: Mapping[str, bytes]) -> None:
    """Put it there.

    Raises
    ------
    StoreError
        No space, no permission.
    """
    with new_folder(entry_path(root, stage, record.key)) as folder:
        put_record(folder, record)  # type: ignore[arg-type]
        for name, content in files.items():
            (folder / name).write_bytes(content)
        seal_folder(folder)
