"""Clocks: time a number of calls on a device, and prepare the process that hosts the calls.

One class per kind of device behind one interface (`cpu`, `cuda`). A timer lives in the measuring
child.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

Call = Callable[[], object]

FLUSH_FACTOR = 2  # a flush writes this many times the cache, so that nothing of the working set remains


class CannotRecord(Exception):
    """The callable cannot be recorded as a graph."""


class Timer(Protocol):
    """How calls are timed on one kind of device."""

    device: str
    """The torch device that holds the tensors."""

    def prepare(self) -> None:
        """Set threads and affinity; before the first operation."""
        ...

    def recorded(self, call: Call) -> Call:
        """What is called from now on: the call itself, or the graph that it was recorded as.

        Raises
        ------
        CannotRecord
            A graph is asked for, and the call does something that no graph can hold.
        """
        ...

    def settle(self, call: Call, seconds: float) -> None:
        """Run untimed calls for so long (at least one), until caches and workers are as in steady state."""
        ...

    def batch(self, call: Call, calls: int) -> float:
        """Seconds that so many calls took, back to back, each on a flushed cache where that is asked for."""
        ...

    def straight(self, call: Call, calls: int) -> float:
        """Seconds that so many calls took, and nothing else between the clock's two readings."""
        ...

    def latencies(self, call: Call, gaps: Sequence[float]) -> tuple[float, ...]:
        """Seconds of each of some calls, with so many idle seconds before each: what a server sees."""
        ...

    def host_seconds(self, call: Call, calls: int) -> float | None:
        """Seconds of the host for one call, while the device works on; None where the host is the device."""
        ...

    def facts(self) -> dict[str, str]:
        """What was found while measuring: name, clock, driver, threads."""
        ...
