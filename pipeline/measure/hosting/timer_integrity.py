"""Did a candidate change what it is timed with? Runs in its process. Out: what was replaced, one line each.

Verify looks at far more, but in a process in which nothing is timed: a candidate can tell the two apart. Code
of the same process can hide from this, in Python's frames for example; that its clock is false, the kernel's
account of its CPU time still shows (`pipeline.measure.hosting.clock_check`).
"""

import time

from pipeline.backends.devices.device import Timer
from pipeline.sandbox.observation.module_copy import module_copy

MODULES = (
    "builtins",
    "gc",
    "msgspec",
    "msgspec.msgpack",
    "multiprocessing.connection",
    "sys",
    "threading",
    "time",
    "torch.cuda",
    "torch.cuda.streams",
)
CLASSES = (
    "multiprocessing.connection.Connection",
    "multiprocessing.connection._ConnectionBase",
    "torch.cuda.Event",
    "torch.cuda.Stream",
)
"""What clocks are read with and commands come through, beside this package's own functions."""


class Clockwork:
    """Made before the candidate's code is loaded: some milliseconds."""

    def __init__(self, timer: Timer) -> None:
        self._surroundings = module_copy("pipeline.sandbox.observation.process_state")
        self._before = self._surroundings.snapshot((*MODULES, type(timer).__module__), CLASSES, ())
        self._timer = timer
        self._attributes = frozenset(vars(timer))
        self._clocks = (time.perf_counter_ns, time.perf_counter, time.sleep)

    def changes(self) -> tuple[str, ...]:
        """All that was replaced since, in a millisecond or two: `time.perf_counter_ns was replaced`."""
        hiding = sorted(vars(self._timer).keys() - self._attributes)
        found: tuple[str, ...] = self._surroundings.changes(self._before)
        return (*found, *(f"{type(self._timer).__name__}.{name} was replaced" for name in hiding))

    def clock_changed(self) -> bool:
        """Whether the clock itself was replaced; in less than a microsecond, so right before a batch."""
        # One by one: nothing here calls what could have been replaced.
        perf_counter_ns, perf_counter, sleep = self._clocks
        return (
            time.perf_counter_ns is not perf_counter_ns
            or time.perf_counter is not perf_counter
            or time.sleep is not sleep
        )
