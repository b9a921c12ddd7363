"""Callables whose processes have a true clock or a false one: `brief_true`, `long_slow_25`, `long_late_25`, …

`slow`: the clock leaves out so many per cent of all time; `late`: of the calls before which nothing ran for a
while, and of nothing else.
"""

import time
from collections.abc import Callable

import torch

REPEATS = {"brief": 1, "long": 40}
"""Softmax computations in one call: some ten microseconds, and some hundred."""
SLOW = (5, 10, 25, 50)
LATE = (10, 25)
CLOCKS = ("true", *(f"slow_{share}" for share in SLOW), *(f"late_{share}" for share in LATE))
A_GAP = 500_000  # ns without a call

_start = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
_taken = 0
_ended = 0


def _now() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def _slow(share: int) -> Callable[[], int]:
    return lambda: _start + (_now() - _start) * (100 - share) // 100


def _late() -> int:
    return _now() - _taken


def _callable(repeats: int, clock: str) -> Callable[[torch.Tensor], torch.Tensor]:
    kind, _, number = clock.partition("_")
    share = int(number or 0)
    false = {"true": None, "slow": _slow(share), "late": _late}[kind]

    def call(x: torch.Tensor) -> torch.Tensor:
        global _taken, _ended  # noqa: PLW0603
        if false is not None and time.perf_counter_ns is not false:
            time.perf_counter_ns = false
        began = _now()
        for _ in range(repeats):
            y = torch.softmax(x, dim=-1)
        idle, _ended = began - _ended, _now()
        if kind == "late" and idle > A_GAP:
            _taken += (_ended - began) * share // 100
        return y

    return call


for _length, _repeats in REPEATS.items():
    for _clock in CLOCKS:
        globals()[f"{_length}_{_clock}"] = _callable(_repeats, _clock)
