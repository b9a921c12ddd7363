"""Names of temporary files, from which it can be seen whether the process that makes them is alive.

In: the name of the thing. Out: a prefix for a temporary neighbour, `.<name>.<machine>.<process>-`; and the
end of neighbours whose maker was killed, so that nothing half-made gathers.
"""

import contextlib
import functools
import hashlib
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

SCRATCH = "kernelmill"
"""First part of the name of a temporary folder in the system's folder for such."""
ABANDONED_SECONDS = 86400.0
"""After which that is removed whose maker cannot be asked after: another machine's, or an earlier boot's."""
SLACK = 2.0
"""Seconds by which the clocks of files and of processes may differ."""
_NAME = re.compile(r"\.(?P<machine>[0-9a-f]{8})\.(?P<process>[0-9]+)-[^/]*$")


def prefix(name: str) -> str:
    """How the name of something begins that this process makes and that will become `name`."""
    process = os.getpid()
    return f".{name}.{_machine(process)}.{process}-"


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for temporary files, removed at the end, or by `sweep` where the process was killed."""
    with tempfile.TemporaryDirectory(
        prefix=f"{SCRATCH}{prefix('tmp')}", ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)


def sweep(*folders: Path) -> None:
    """Remove what killed processes left half-made in these folders; what cannot be removed stays."""
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if "-" in entry.name and _is_abandoned(entry):
                    _remove(Path(entry.path))


def _is_abandoned(entry: "os.DirEntry[str]") -> bool:
    match = _NAME.search(entry.name)
    if match is None or not entry.name.startswith((".", f"{SCRATCH}.")):
        return False
    with contextlib.suppress(OSError):
        seconds = time.time() - entry.stat(follow_symlinks=False).st_mtime
        if match["machine"] == _machine(os.getpid()):
            return not _made_by(int(match["process"]), seconds)
        return seconds > ABANDONED_SECONDS
    return False


@functools.lru_cache(maxsize=1)
def _machine(process: int) -> str:  # noqa: ARG001  (a fork may have moved to another name space: read again)
    """This boot of this machine, and where process ids have their meaning: containers share a kernel."""
    parts = [platform.node()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


def _made_by(process: int, seconds: float) -> bool:
    """Whether the process that has this id now may be the maker of what was last changed so long ago."""
    age = _age(process)
    if age is not None:
        return age > seconds - SLACK
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    # If /proc has no entry of a process although its id is taken, there is no /proc.
    return not Path("/proc/self/stat").exists()


def _age(process: int) -> float | None:
    """Seconds since a process started; None if it has ended (reaped or not) or if this is not known.

    Ids come round again (after 32,768 of them by default), so that an id that is taken is not yet a maker.
    """
    try:
        state, *fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    if state in "ZX":
        return None
    # proc_pid_stat(5): field 22, in clock ticks since boot; the state is field 3.
    started = int(fields[18]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()
