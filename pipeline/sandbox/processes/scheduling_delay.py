"""How long a process waited for a core: time that passed on a busy machine and was not the process's own.

In: a process id. Out: seconds since it started; 0 where the platform does not tell. Sleeping, also on a lock
that nobody will ever release, is not waiting for a core, so a process that hangs still meets its limit.
"""

from pathlib import Path


def waited(process: int) -> float:
    """Seconds that its main thread was ready to run while others ran (Linux, `schedstat`)."""
    return _waited(f"/proc/{process}/schedstat")


def waited_here() -> float:
    """The same of the thread that asks."""
    return _waited("/proc/thread-self/schedstat")


def _waited(path: str) -> float:
    try:
        fields = Path(path).read_text().split()
        return int(fields[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
