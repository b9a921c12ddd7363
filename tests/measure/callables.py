"""References and misbehaving callables that the tests measure; each gets x[rows, cols]."""

import os
import signal
import sys
import threading
import time

import torch


def plain(x: torch.Tensor) -> torch.Tensor:
    """What the others are compared with."""
    return torch.softmax(x, dim=-1)


def slowed(x: torch.Tensor) -> torch.Tensor:
    """The same with half of it once more."""
    torch.softmax(x[: x.shape[0] // 2], dim=-1)
    return torch.softmax(x, dim=-1)


def as_float64(x: torch.Tensor) -> tuple[torch.Tensor]:
    """Arguments for one of the others."""
    return (x.double(),)


def refusing(x: torch.Tensor) -> torch.Tensor:
    """Raises."""
    raise ValueError("no such\nsize")


def not_compiling(x: torch.Tensor) -> torch.Tensor:
    """Raises what torch.compile raises where Python's headers are missing."""
    raise RuntimeError(
        "C++ compile error\n\ng++ x.cpp\n\nx.cpp:1:10: fatal error: Python.h: No such file\n  1 |"
    )


def crashing(x: torch.Tensor) -> torch.Tensor:
    """Dies at its first call."""
    os.kill(os.getpid(), signal.SIGSEGV)
    return x


def hanging(x: torch.Tensor) -> torch.Tensor:
    """Never returns."""
    while True:
        time.sleep(1)


_START = time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def _slow_clock() -> int:
    return _START + (time.clock_gettime_ns(time.CLOCK_MONOTONIC) - _START) * 3 // 4


def lying(x: torch.Tensor) -> torch.Tensor:
    """Slows the clock of its process down by a quarter."""
    if time.perf_counter_ns is not _slow_clock:  # once: set anew in each call, it would catch up between them
        time.perf_counter_ns = _slow_clock  # type: ignore[assignment]
    return torch.softmax(x, dim=-1)


def slow(x: torch.Tensor) -> torch.Tensor:
    """About a millisecond of the processor."""
    for _ in range(40):
        torch.softmax(x, dim=-1)
    return torch.softmax(x, dim=-1)


def slow_lying(x: torch.Tensor) -> torch.Tensor:
    """The same, and slows the clock of its process down by a quarter."""
    slow(x)
    return lying(x)


_added = 0


def _hurried_clock() -> int:
    global _added  # noqa: PLW0603
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_name != "_calibrate":
        frame = frame.f_back
    if frame.f_code.co_name == "_calibrate":
        _added += 5_000_000
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) + _added


def hurrying(x: torch.Tensor) -> torch.Tensor:
    """Has its clock run far too fast while its calls are counted, so that a batch of them is one."""
    if time.perf_counter_ns is not _hurried_clock:
        time.perf_counter_ns = _hurried_clock  # type: ignore[assignment]
    return torch.softmax(x, dim=-1)


_taken = 0
_ended = 0


def _sparing_clock() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) - _taken


def lying_after_gaps(x: torch.Tensor) -> torch.Tensor:
    """As `slow`; has its clock leave out an eighth of each call before which there was an idle gap."""
    global _taken, _ended  # noqa: PLW0603
    if time.perf_counter_ns is not _sparing_clock:
        time.perf_counter_ns = _sparing_clock  # type: ignore[assignment]
    began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    y = slow(x)
    idle, _ended = began - _ended, time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    if idle > _A_GAP:
        _taken += (_ended - began) // 8
    return y


_A_GAP = 500_000  # ns


def burning(x: torch.Tensor) -> torch.Tensor:
    """Starts a thread that burns a core from then on."""
    if threading.active_count() == 1:
        threading.Thread(target=_burn, daemon=True).start()
    return torch.softmax(x, dim=-1)


def _burn() -> None:
    while True:
        pass


_calls = 0


def failing_later(x: torch.Tensor) -> torch.Tensor:
    """Kills its process after some calls."""
    global _calls  # noqa: PLW0603
    _calls += 1
    if _calls > 200:
        os.kill(os.getpid(), signal.SIGKILL)
    return torch.softmax(x, dim=-1)


def twice(x: torch.Tensor) -> torch.Tensor:
    """The reference of `tests/stages/twice.cpp`."""
    return x * 2


_WARM_AFTER = 1.0  # seconds
_first: list[float] = []


def warming(x: torch.Tensor) -> torch.Tensor:
    """Takes 21 ms at first, and less and less until it is warm."""
    now = time.perf_counter()
    _first.append(now) if not _first else None
    time.sleep(0.001 + 0.02 * max(0.0, 1 - (now - _first[0]) / _WARM_AFTER))
    return x
