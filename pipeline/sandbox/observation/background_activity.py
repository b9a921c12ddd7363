"""What runs in this process besides its main thread: threads and processes that a candidate left."""

import os
import sys

from pipeline.records.record import Record

_EXITING = 0x4  # PF_EXITING of Linux's include/linux/sched.h


class BackgroundActivity(Record, frozen=True, kw_only=True):
    """What runs besides the main thread."""

    threads: int
    """Of Python."""
    native: frozenset[str]
    """Numbers of all threads of the operating system, those of Python and of thread pools included."""
    children: int
    """Processes."""


def running() -> BackgroundActivity:
    """Count now; compare with an earlier count."""
    return BackgroundActivity(
        threads=len(sys._current_frames()) - 1,
        native=_tasks(),
        children=len(_children()),
    )


def left_running(before: BackgroundActivity) -> BackgroundActivity:
    """What runs now and did not before; a pool that shrank or was made anew counts as nothing."""
    now = running()
    more = len(now.native) > len(before.native)
    new = now.native - before.native if more else frozenset()
    return BackgroundActivity(
        threads=max(now.threads - before.threads, 0),
        native=frozenset(task for task in new if not _is_ending(task)),
        children=max(now.children - before.children, 0),
    )


def _is_ending(task: str) -> bool:
    """Whether a thread has done its work: who joins it goes on before it leaves the system's list."""
    try:
        with open(f"/proc/self/task/{task}/stat") as stream:  # noqa: PTH123
            flags = stream.read().rpartition(")")[2].split()[6]  # proc(5): field 9
    except OSError:
        return True
    return bool(int(flags) & _EXITING)


def _tasks() -> frozenset[str]:
    try:
        return frozenset(os.listdir("/proc/self/task"))  # noqa: PTH208
    except OSError:
        return frozenset()


def _children() -> list[str]:
    found: list[str] = []
    try:
        for thread in os.listdir("/proc/self/task"):  # noqa: PTH208
            with open(f"/proc/self/task/{thread}/children") as stream:  # noqa: PTH123
                found += stream.read().split()
    except OSError:
        pass
    return found
