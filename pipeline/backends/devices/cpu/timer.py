"""The CPU's clock: monotonic, one pinned thread per core; flushing the cache and idling are not timed.

OpenMP: GOMP_SPINCOUNT and OMP_WAIT_POLICY stay at the runtime's defaults, for all callables alike: PyTorch
users run with them, torch's own runtime has read them long before a child could set them, and workers that
sleep between calls would add a wake-up to every call of a small kernel. The price is that workers spin for
some milliseconds after a parallel region; the coordinator therefore stops every process that is not being
timed (`pipeline.measure.hosting`), and `settle` runs untimed calls before the clock starts.
"""

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.backends.devices.cpu.processor import cpu_facts, last_level_cache, usable_cores
from pipeline.backends.devices.device import FLUSH_FACTOR, Call

if TYPE_CHECKING:
    import torch

HIGHEST_PRIORITY = -20  # nice value


class CpuTimer:
    """Monotonic clock, one thread per usable core, threads pinned."""

    def __init__(self, *, flush_cache: bool) -> None:
        self._flush = flush_cache
        self._scratch: torch.Tensor | None = None
        self._cores = usable_cores()
        self._priority = 0

    def prepare(self) -> None:
        """One thread per physical core; memory that is freed is kept, so that no call pays for page faults.

        An allocator that gives pages back makes every eager call fault them in again, which a kernel with
        preallocated outputs never does: a speed-up of the allocator, not of the kernel.
        """
        import torch

        os.sched_setaffinity(0, self._cores)
        torch.set_num_threads(len(self._cores))
        _keep_freed_memory()
        self._priority = raise_priority()

    def settle(self, call: Call, seconds: float) -> None:
        """Untimed calls; then the threads that they started are pinned."""
        os.sched_setaffinity(0, self._cores)  # threads that are started now inherit this
        end = time.perf_counter() + seconds
        call()
        while time.perf_counter() < end:
            call()
        _pin(self._cores)

    def batch(self, call: Call, calls: int) -> float:
        """Back to back, or each call on a flushed cache with the flush left out."""
        if not self._flush:
            return self.straight(call, calls)
        clock = time.perf_counter_ns
        spent = 0
        for _ in range(calls):
            self._evict()
            start = clock()
            call()
            spent += clock() - start
        return spent * 1e-9

    def straight(self, call: Call, calls: int) -> float:
        """A loop of calls and nothing else."""
        clock = time.perf_counter_ns
        start = clock()
        for _ in range(calls):
            call()
        return (clock() - start) * 1e-9

    def recorded(self, call: Call) -> Call:
        """The call itself."""
        return call

    def latencies(self, call: Call, gaps: Sequence[float]) -> tuple[float, ...]:
        """The process sleeps in the gaps, so that workers sleep and cores slow down as in a server."""
        clock = time.perf_counter_ns
        found = []
        for gap in gaps:
            if self._flush:
                self._evict()
            time.sleep(gap)
            start = clock()
            call()
            found.append((clock() - start) * 1e-9)
        return tuple(found)

    def host_seconds(self, call: Call, calls: int) -> None:  # noqa: ARG002
        """The host is the device."""
        return

    def facts(self) -> dict[str, str]:
        """Model, frequency as the kernel reports it, governor, threads, huge pages, torch."""
        import torch

        return cpu_facts() | {
            "threads": str(torch.get_num_threads()),
            "torch": str(torch.__version__),
            "timer": "perf_counter_ns",
            "allocator": "freed memory is kept",
            "nice": str(self._priority),
        }

    def _evict(self) -> None:
        import torch

        if self._scratch is None:
            self._scratch = torch.zeros(FLUSH_FACTOR * last_level_cache() // 4)
        self._scratch.add_(1.0)


def _keep_freed_memory() -> None:
    """glibc: no allocation through mmap, no trimming of the heap; other C libraries are left as they are."""
    import ctypes

    trim_threshold, mmap_max = -1, -4  # M_TRIM_THRESHOLD, M_MMAP_MAX of malloc.h
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(trim_threshold, -1)
        mallopt(mmap_max, 0)


def raise_priority() -> int:
    """Go before other processes where that is allowed (root, or a limit allows it); the nice value reached.

    Threads inherit it. Where the kernel groups processes by session, the group's value counts.
    """
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, HIGHEST_PRIORITY)
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(HIGHEST_PRIORITY))
    return os.getpriority(os.PRIO_PROCESS, 0)


def _pin(cores: tuple[int, ...]) -> None:
    """Give each thread a core of its own, the first one to the main thread.

    Workers are known by their order: each thread pool has one less than there are cores.
    """
    if len(cores) < 2:
        return
    main = os.getpid()
    tasks = sorted(int(task.name) for task in Path("/proc/self/task").iterdir())
    workers = [task for task in tasks if task != main]
    for number, task in enumerate([main, *workers]):
        core = cores[0] if task == main else cores[1 + (number - 1) % (len(cores) - 1)]
        with contextlib.suppress(OSError):  # it has ended meanwhile
            os.sched_setaffinity(task, {core})
