"""One measurement at a time on a device, across runs and users of the machine."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pipeline.records.record import digest

FOLDER = "kernelmill-locks"


@contextlib.contextmanager
def device_lock(device: str) -> Iterator[None]:
    """Hold the device alone, for one variant at a time; waits without a limit until it is free."""
    folder = Path(tempfile.gettempdir()) / FOLDER
    folder.mkdir(exist_ok=True)
    with contextlib.suppress(PermissionError):  # another user made it, with this mode
        folder.chmod(0o1777)
    descriptor = _open(folder / f"{digest(device)}.lock")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    """A file that every user can lock, made by the first.

    In a folder that all may write, Linux refuses to open another user's file with O_CREAT
    (fs.protected_regular), which is how `filelock` opens it; to read it is allowed and enough for a lock.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o444))
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
