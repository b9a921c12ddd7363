"""What the kernel's scheduler has counted for a process: time that it ran, and that it waited for a core."""

import contextlib
import os

from pipeline.records.record import Record


class Account(Record, frozen=True, kw_only=True):
    """So far; all 0 where the platform does not tell."""

    computed: float
    """CPU seconds of the main thread."""
    waited: float
    """Seconds of all threads in the run queues, without running."""
    queued: float
    """Those of the main thread."""


def account_of(process: int | None) -> Account:
    """Exact while the process sleeps."""
    computed = waited = own = 0
    tasks = f"/proc/{process}/task"
    with contextlib.suppress(OSError):  # it, or a thread of it, has just ended
        for thread in os.listdir(tasks):  # noqa: PTH208  (twice for each batch, and paths take longer)
            with contextlib.suppress(OSError), open(f"{tasks}/{thread}/schedstat") as stream:  # noqa: PTH123
                ran, queued, _ = map(int, stream.read().split())
                waited += queued
                if thread == str(process):
                    computed, own = ran, queued
    return Account(computed=computed * 1e-9, waited=waited * 1e-9, queued=own * 1e-9)
