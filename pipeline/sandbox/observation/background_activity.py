"""What runs in this process besides its main thread: threads and processes that a candidate left."""

import os
import sys

from pipeline.records.record import Record


class BackgroundActivity(Record, frozen=True, kw_only=True):
    """What runs besides the main thread."""

    threads: int
    """Of Python."""
    native: int
    """Of the operating system, those of Python and of thread pools included."""
    children: int
    """Processes."""


def running() -> BackgroundActivity:
    """Count now; compare with an earlier count."""
    return BackgroundActivity(
        threads=len(sys._current_frames()) - 1,
        native=_count("/proc/self/task") - 1,
        children=len(_children()),
    )


def left_running(before: BackgroundActivity) -> BackgroundActivity:
    """What runs now and did not before; a pool that shrank counts as nothing."""
    now = running()
    return BackgroundActivity(
        threads=max(now.threads - before.threads, 0),
        native=max(now.native - before.native, 0),
        children=max(now.children - before.children, 0),
    )


def _count(folder: str) -> int:
    try:
        return len(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return 1


def _children() -> list[str]:
    found: list[str] = []
    try:
        for thread in os.listdir("/proc/self/task"):  # noqa: PTH208
            with open(f"/proc/self/task/{thread}/children") as stream:  # noqa: PTH123
                found += stream.read().split()
    except OSError:
        pass
    return found
