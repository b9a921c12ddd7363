"""One run at a time: a lock that the kernel releases when its holder ends, also after `kill -9`."""

import contextlib
import fcntl
import os
import sys
from pathlib import Path
from typing import TextIO

from pipeline.records.errors import StoreError, explained


def take_lock(path: Path) -> TextIO:
    """Wait until it is free, and name the holder; held until the file closes or the process ends.

    Raises
    ------
    StoreError
        The lock cannot be opened, or the file system has none.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("a+")
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {explained(error)}") from error
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        stream.seek(0)
        holder = stream.read().strip() or "unknown"
        print(f"waiting for another run in this checkout (process {holder}) …", file=sys.stderr, flush=True)
        fcntl.flock(stream, fcntl.LOCK_EX)
    except OSError as error:  # a shared file system that was mounted so
        raise StoreError(
            f"{path}: the file system does not lock files ({error.strerror}): see "
            "docs/guide/clusters.md for what it must do"
        ) from None
    with contextlib.suppress(OSError):  # it only names the holder of the lock
        stream.truncate(0)
        stream.write(f"{os.getpid()}\n")
        stream.flush()
    return stream
