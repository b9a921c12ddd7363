"""Writes that are whole or absent, whatever kills the process."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pipeline.errors import REMEDIES, StoreError, explained
from pipeline.store.owners import prefix


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file through a temporary neighbour.

    Raises
    ------
    StoreError
        No space, no permission: the target is untouched.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=prefix(path.name), dir=path.parent)
    except OSError as error:
        raise unwritable(path, error) from error
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        # mkstemp makes files private; results are for everyone who may read the folder.
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> StoreError:
    """The error for a path that cannot be written."""
    return StoreError(f"{path}: cannot be written: {explained(error)}")


@contextlib.contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes `target` when the block ends without an exception.

    Where another process was first, its result stays and ours is dropped: entries are content-addressed,
    so both are equal in what counts.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=prefix(target.name), dir=target.parent))
    except OSError as error:
        raise unwritable(target, error) from error
    try:
        yield scratch
        scratch.chmod(0o755)
        try:
            scratch.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    except OSError as error:
        if error.errno not in REMEDIES:
            raise
        raise unwritable(target, error) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
