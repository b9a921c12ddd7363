"""What autotuners measure while a candidate is judged: nothing. Their configurations get random times.

In: the call of one configuration. Out: seconds that are the same in every process, so that over the sizes of
its calls a kernel is tried with several of its configurations. On a device, those that it refuses are left
out.
"""

import inspect
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_ORDERS = 4
"""On a device: what was compiled for other sizes is taken again."""


def tuned(call: Callable[[], Any]) -> Mapping[str, Any]:
    """Variables of Triton's autotuner around a call of one of its configurations; empty for other calls."""
    held = inspect.getclosurevars(call).nonlocals if inspect.isfunction(call) else {}
    return held if {"self", "config"} <= held.keys() and hasattr(held["self"], "keys") else {}


def random_seconds(held: Mapping[str, Any], orders: int = 1 << 32) -> float:
    """Of the configuration in `tuned`; `orders`: how many orders of all configurations there are."""
    order = zlib.crc32(repr(_key(held)).encode()) % orders
    return float(zlib.crc32(repr((str(held["config"]), order)).encode()))


def _key(held: Mapping[str, Any]) -> list[Any]:
    """The arguments for which the autotuner chooses anew."""
    arguments = held.get("full_nargs", {})
    found = (arguments.get(name) for name in held["self"].keys)
    return [value for value in found if isinstance(value, int | float | str)]


def stand_in_for_benchmarks(synchronize: Callable[[], None]) -> None:
    """Replace Triton's benchmarks in this process, before a candidate is imported."""
    import triton.testing

    triton.testing.do_bench = triton.testing.do_bench_cudagraph = _Benchmark(synchronize).measure


class _Benchmark:
    """On a device, where all configurations together would be compiled for minutes."""

    def __init__(self, synchronize: Callable[[], None]) -> None:
        self._synchronize = synchronize
        self._shortest: dict[tuple[Any, str], float] = {}
        """Among the configurations that run; by autotuner and what it chooses for."""

    def measure(
        self, fn: Callable[[], Any], *_: Any, quantiles: Sequence[float] | None = None, **__: Any
    ) -> float | list[float]:
        """Call it, unless a configuration with a shorter time runs, so that this one is not taken."""
        held = tuned(fn)
        seconds = random_seconds(held, _ORDERS) if held else 1.0
        place = (held["self"], repr(_key(held))) if held else (None, "")
        if not held or seconds < self._shortest.get(place, float("inf")):
            fn()  # raises what the autotuner takes for "does not run here"
            self._synchronize()
            if held:
                self._shortest[place] = seconds
        return seconds if quantiles is None else [seconds for _ in quantiles]
