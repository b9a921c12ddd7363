"""What runs in this process besides its main thread: threads and processes that a candidate left."""

import os
import sys
import time

from pipeline.records.record import Record

_GRACE = 0.2  # seconds in which a thread that has ended leaves the system's list, also on a busy machine


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
    """What runs now, did not before, and goes on; a pool that shrank or was made anew counts as nothing."""
    deadline = time.monotonic() + _GRACE
    while True:
        left = _added(before, running())
        if left.threads or not left.native or time.monotonic() > deadline:  # those of Python end at once
            return left
        time.sleep(0.005)


def _added(before: BackgroundActivity, now: BackgroundActivity) -> BackgroundActivity:
    more = len(now.native) > len(before.native)
    return BackgroundActivity(
        threads=max(now.threads - before.threads, 0),
        native=now.native - before.native if more else frozenset(),
        children=max(now.children - before.children, 0),
    )


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
