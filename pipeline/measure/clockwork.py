"""Did a candidate change what it is timed with? Runs in its process. Out: what was replaced, one line each.

Verify looks at far more, but in a process in which nothing is timed: a candidate can tell the two apart.
"""

from pipeline.checks.private import private

MODULES = ("builtins", "gc", "sys", "threading", "time", "torch.cuda", "torch.cuda.streams")
CLASSES = ("torch.cuda.Event", "torch.cuda.Stream", "multiprocessing.connection.Connection")
"""What clocks are read with, beside this package's own functions."""


class Clockwork:
    """Made before the candidate's code is loaded; a few milliseconds."""

    def __init__(self) -> None:
        self._surroundings = private("pipeline.checks.surroundings")
        self._before = self._surroundings.snapshot(MODULES, CLASSES, ())

    def changes(self) -> tuple[str, ...]:
        """What was replaced since: `time.perf_counter_ns was replaced`."""
        found: tuple[str, ...] = self._surroundings.changes(self._before)
        return found
