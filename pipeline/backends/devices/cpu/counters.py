"""Hardware counters of the calling process through perf_event_open: batches in, counts per call out.

Runs in the process that hosts the calls and counts all its threads, user mode only (names end in `:u`, as
perf writes them) but for what the kernel alone can see. Workers that spin between two calls count as well.
Every set of events gets a run of its own, small enough for a processor's counters; where the kernel takes
turns among events all the same, counts are scaled by time enabled over time running.

Source: perf_event_open(2), include/uapi/linux/perf_event.h.
"""

import contextlib
import ctypes
import errno
import functools
import os
import platform
import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol

from pipeline.records.record import Record
from pipeline.records.results.profiled import Counters, Unmeasured

TOOL = "perf_event"
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")


class Event(Record, frozen=True, kw_only=True):
    """One counter."""

    name: str
    type: Literal["hardware", "software", "cache"]
    config: int
    mode: Literal["user", "all"] = "user"

    @property
    def label(self) -> str:
        """As perf prints it."""
        return f"{self.name}:u" if self.mode == "user" else self.name


class Reading(Record, frozen=True, kw_only=True):
    """What the kernel gives back of one event on one thread; times in nanoseconds."""

    value: int
    enabled: int
    running: int


class Perf(Protocol):
    """The kernel's interface."""

    def open(self, event: Event, thread: int) -> int:
        """A descriptor of a counter that stands still; OSError where it is not allowed or not there."""
        ...

    def start(self) -> None:
        """Let all run that this thread opened."""
        ...

    def stop(self) -> None:
        """Stop them."""
        ...

    def read(self, descriptor: int) -> Reading:
        """What was counted."""
        ...

    def close(self, descriptor: int) -> None:
        """Give it back."""
        ...


def _cache(level: int, result: int) -> int:
    """Reads of a cache (level 0 first data, 2 last, 3 data TLB); result 0 all, 1 misses."""
    return level | 0 << 8 | result << 16


EVENTS: tuple[tuple[Event, ...], ...] = (
    (
        Event(name="task-clock", type="software", config=1),
        Event(name="page-faults", type="software", config=2),
        Event(name="context-switches", type="software", config=3, mode="all"),
        Event(name="cpu-migrations", type="software", config=4, mode="all"),
        Event(name="cycles", type="hardware", config=0),
        Event(name="instructions", type="hardware", config=1),
    ),
    (
        Event(name="branches", type="hardware", config=4),
        Event(name="branch-misses", type="hardware", config=5),
        Event(name="cache-references", type="hardware", config=2),
        Event(name="cache-misses", type="hardware", config=3),
    ),
    (
        Event(name="L1-dcache-loads", type="cache", config=_cache(0, 0)),
        Event(name="L1-dcache-load-misses", type="cache", config=_cache(0, 1)),
        Event(name="LLC-loads", type="cache", config=_cache(2, 0)),
        Event(name="LLC-load-misses", type="cache", config=_cache(2, 1)),
    ),
    (
        Event(name="dTLB-loads", type="cache", config=_cache(3, 0)),
        Event(name="dTLB-load-misses", type="cache", config=_cache(3, 1)),
    ),
)


def count(batch: Callable[[], int], perf: Perf | None = None) -> Counters | Unmeasured:
    """Counts per call; `batch`, run once for each set, runs some calls to their end and returns how many.

    What the kernel refuses is listed with the reason; if it refuses everything, so is the whole.
    """
    if perf is None:
        if sys.platform != "linux" or platform.machine() not in LinuxPerf.CALLS:
            return Unmeasured(quantity="counters", reason="perf_event_open is known here for Linux alone")
        perf = LinuxPerf()
    values: dict[str, float] = {}
    absent: dict[str, str] = {}
    for events in EVENTS:
        _count_set(events, batch, perf, values, absent)
    if not values:
        return Unmeasured(quantity="counters", reason=f"{TOOL}: {next(iter(absent.values()))}")
    return Counters(tool=TOOL, values=values, absent=absent)


def lines() -> dict[str, str]:
    """For people: which counters there are, and why not the others."""
    found = count(lambda: 1)
    if isinstance(found, Unmeasured):
        return {"counters": f"absent: {found.reason}"}
    reasons: dict[str, list[str]] = {}
    for name, reason in found.absent.items():
        reasons.setdefault(reason, []).append(name)
    refused = {f"counters ({len(names)})": f"absent: {reason}" for reason, names in reasons.items()}
    return {"counters": ", ".join(found.values)} | refused


class LinuxPerf:
    """The real one."""

    CALLS = {"x86_64": 298, "aarch64": 241}
    """Number of the system call perf_event_open."""
    _TYPES = {"hardware": 0, "software": 1, "cache": 3}
    _TIMES = 1 | 2  # PERF_FORMAT_TOTAL_TIME_ENABLED, …_RUNNING
    _DISABLED, _INHERIT, _NO_KERNEL, _NO_HYPERVISOR = 1 << 0, 1 << 1, 1 << 5, 1 << 6
    _CLOSE_ON_EXEC = 1 << 3
    _STOP_ALL, _START_ALL = 31, 32  # PR_TASK_PERF_EVENTS_DISABLE, …_ENABLE

    def open(self, event: Event, thread: int) -> int:
        """Of the thread wherever it runs, and of threads that it starts from now on."""
        flags = self._DISABLED | self._INHERIT
        if event.mode == "user":
            flags |= self._NO_KERNEL | self._NO_HYPERVISOR
        attributes = struct.pack(  # perf_event_attr as of its first version: 64 bytes
            "IIQQQQQIIQ", self._TYPES[event.type], 64, event.config, 0, 0, self._TIMES, flags, 0, 0, 0
        )
        numbers = (thread, -1, -1, self._CLOSE_ON_EXEC)
        number = ctypes.c_long(self.CALLS[platform.machine()])
        return _checked(_library().syscall(number, attributes, *map(ctypes.c_long, numbers)))

    def start(self) -> None:
        """One call of the kernel for all."""
        _checked(_library().prctl(self._START_ALL, 0, 0, 0, 0))

    def stop(self) -> None:
        """Likewise."""
        _checked(_library().prctl(self._STOP_ALL, 0, 0, 0, 0))

    def read(self, descriptor: int) -> Reading:
        """Its threads' children included."""
        value, enabled, running = struct.unpack("QQQ", os.read(descriptor, 24))
        return Reading(value=value, enabled=enabled, running=running)

    def close(self, descriptor: int) -> None:
        """Close it."""
        os.close(descriptor)


@functools.cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    library.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    return library


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(result)


def _count_set(
    events: Sequence[Event],
    batch: Callable[[], int],
    perf: Perf,
    values: dict[str, float],
    absent: dict[str, str],
) -> None:
    opened: dict[str, list[int]] = {}
    try:
        for event in events:
            try:
                _open(event, perf, opened.setdefault(event.label, []))
            except OSError as error:
                absent[event.label] = _why(error)
        if not opened.keys() - absent.keys():
            return
        perf.start()
        calls = batch()
        perf.stop()
        for label in [label for label in opened if label not in absent]:
            readings = [perf.read(descriptor) for descriptor in opened[label]]
            found = _total(readings)
            if found is None:
                absent[label] = "the kernel had no counter free for it"
            else:
                values[label] = found / calls
    finally:
        for descriptors in opened.values():
            for descriptor in descriptors:
                perf.close(descriptor)


def _open(event: Event, perf: Perf, descriptors: list[int]) -> None:
    """On every thread; one that has ended meanwhile needs no counter."""
    for thread in _threads():
        with contextlib.suppress(ProcessLookupError):
            descriptors.append(perf.open(event, thread))


def _threads() -> list[int]:
    return sorted(int(path.name) for path in Path("/proc/self/task").iterdir())


def _total(readings: Sequence[Reading]) -> float | None:
    """Of all threads, each scaled to the time that it was to be counted; None if one never was.

    A thread that slept all the time was enabled for no time, and counts as nothing.
    """
    if any(reading.enabled and not reading.running for reading in readings):
        return None
    return sum(reading.value * reading.enabled / reading.running for reading in readings if reading.running)


def _why(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        try:
            level = f" is {PARANOID.read_text().strip()}"
        except OSError:
            level = " is not here"
        return (
            f"not allowed: {PARANOID}{level}; sudo sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON"
            " (containers: --cap-add PERFMON)"
        )
    if error.errno in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        return "this processor does not count it, or its virtual machine does not let it"
    return f"perf_event_open: {error.strerror}"
