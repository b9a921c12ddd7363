"""Clocks: time a number of calls on a device, and prepare the process that hosts the calls.

One class per kind of device behind one interface. A timer lives in the measuring child.

OpenMP: GOMP_SPINCOUNT and OMP_WAIT_POLICY stay at the runtime's defaults, for all callables alike: PyTorch
users run with them, torch's own runtime has read them long before a child could set them, and workers that
sleep between calls would add a wake-up to every call of a small kernel. The price is that workers spin for
some milliseconds after a parallel region; the coordinator therefore stops every process that is not being
timed (`pipeline.measure.members`), and `settle` runs untimed calls before the clock starts.
"""

import contextlib
import functools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pipeline.records.hardware import BackendKind

if TYPE_CHECKING:
    import torch

Call = Callable[[], object]

HIGHEST_PRIORITY = -20  # nice value
FLUSH_FACTOR = 2  # a flush writes this many times the cache, so that nothing of the working set remains


class Timer(Protocol):
    """How calls are timed on one kind of device."""

    device: str
    """The torch device that holds the tensors."""

    def prepare(self) -> None:
        """Set threads and affinity; before the first operation."""
        ...

    def settle(self, call: Call, seconds: float) -> None:
        """Run untimed calls for so long (at least one), until caches and workers are as in steady state."""
        ...

    def batch(self, call: Call, calls: int) -> float:
        """Seconds that so many calls took."""
        ...

    def facts(self) -> dict[str, str]:
        """What was found while measuring: name, clock, driver, threads."""
        ...


def timer_for(kind: BackendKind, *, flush_cache: bool) -> Timer:
    """The timer of a kind of device."""
    return CpuTimer(flush_cache=flush_cache) if kind == "cpu" else CudaTimer(flush_cache=flush_cache)


def usable_cores() -> tuple[int, ...]:
    """One logical processor of each physical core that this process may use."""
    allowed = os.sched_getaffinity(0)
    first: dict[str, int] = {}
    for number in sorted(allowed):
        siblings = _read(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list").strip()
        first.setdefault(siblings or str(number), number)
    return tuple(first.values())


class CpuTimer:
    """Monotonic clock, one thread per usable core, threads pinned."""

    device = "cpu"

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
        self._priority = _raise_priority()

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
        clock = time.perf_counter_ns
        if self._flush:
            spent = 0
            for _ in range(calls):
                self._evict()
                start = clock()
                call()
                spent += clock() - start
            return spent * 1e-9
        start = clock()
        for _ in range(calls):
            call()
        return (clock() - start) * 1e-9

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


class CudaTimer:
    """Device events around the calls; the L2 cache is overwritten before each call where asked for."""

    device = "cuda"

    def __init__(self, *, flush_cache: bool) -> None:
        self._flush = flush_cache
        self._scratch: torch.Tensor | None = None

    def prepare(self) -> None:
        """Open the device's context now, outside every measured time."""
        import torch

        torch.cuda.init()  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()

    def settle(self, call: Call, seconds: float) -> None:
        """Untimed calls until the clock has risen."""
        import torch

        end = time.perf_counter() + seconds
        call()
        torch.cuda.synchronize()
        while time.perf_counter() < end:
            call()
            torch.cuda.synchronize()

    def batch(self, call: Call, calls: int) -> float:
        """Time on the device between events, host overhead hidden where calls queue up."""
        import torch

        torch.cuda.synchronize()
        event = functools.partial(torch.cuda.Event, enable_timing=True)
        marks = [event() for _ in range(2 * calls if self._flush else 2)]
        if self._flush:
            for first, last in zip(marks[::2], marks[1::2], strict=True):
                self._evict()
                first.record()
                call()
                last.record()
        else:
            marks[0].record()
            for _ in range(calls):
                call()
            marks[1].record()
        torch.cuda.synchronize()
        pairs = zip(marks[::2], marks[1::2], strict=True)
        return 1e-3 * sum(float(first.elapsed_time(last)) for first, last in pairs)

    def facts(self) -> dict[str, str]:
        """Name, capability, multiprocessors, L2, driver's runtime, torch."""
        import torch

        properties = torch.cuda.get_device_properties(0)
        return {
            "name": properties.name,
            "capability": f"{properties.major}.{properties.minor}",
            "multiprocessors": str(properties.multi_processor_count),
            "l2_bytes": str(properties.L2_cache_size),
            "runtime": str(torch.version.cuda or torch.version.hip),
            "torch": str(torch.__version__),
            "timer": "device events",
        }

    def _evict(self) -> None:
        import torch

        if self._scratch is None:
            size = FLUSH_FACTOR * torch.cuda.get_device_properties(0).L2_cache_size
            self._scratch = torch.empty(size, dtype=torch.int8, device="cuda")
        self._scratch.zero_()


def cpu_facts() -> dict[str, str]:
    """What Linux tells about the processor; what it does not tell is left out."""
    info = _read("/proc/cpuinfo")
    facts: dict[str, str] = {}
    for key, name in (("model name", "name"), ("cpu MHz", "clock_mhz")):
        line = next((line for line in info.splitlines() if line.startswith(key)), "")
        if line:
            facts[name] = line.partition(":")[2].strip()
    governor = _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip()
    pages = _read("/sys/kernel/mm/transparent_hugepage/enabled")
    return (
        facts
        | ({"governor": governor} if governor else {})
        | ({"huge_pages": pages.partition("[")[2].partition("]")[0]} if "[" in pages else {})
    )


def last_level_cache() -> int:
    """Bytes of the largest cache of the first core; 32 MiB where Linux does not tell."""
    units = {"K": 1 << 10, "M": 1 << 20}
    sizes = [
        int(text[:-1]) * units[text[-1]]
        for index in range(5)
        if (text := _read(f"/sys/devices/system/cpu/cpu0/cache/index{index}/size").strip())
        and text[-1] in units
    ]
    return max(sizes, default=32 << 20)


def _keep_freed_memory() -> None:
    """glibc: no allocation through mmap, no trimming of the heap; other C libraries are left as they are."""
    import ctypes

    trim_threshold, mmap_max = -1, -4  # M_TRIM_THRESHOLD, M_MMAP_MAX of malloc.h
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(trim_threshold, -1)
        mallopt(mmap_max, 0)


def _raise_priority() -> int:
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


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
