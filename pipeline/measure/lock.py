"""One measurement at a time on a device, across runs and users of the machine."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock

from pipeline.records.record import digest

FOLDER = "kernelmill-locks"


@contextlib.contextmanager
def device_lock(device: str) -> Iterator[None]:
    """Hold the device alone; waits without end for whoever holds it."""
    folder = Path(tempfile.gettempdir()) / FOLDER
    folder.mkdir(exist_ok=True)
    with contextlib.suppress(PermissionError):  # another user made it, with this mode
        folder.chmod(0o1777)
    with FileLock(folder / f"{digest(device)}.lock", mode=0o666):
        yield
