"""A session with a child process: it is asked, one question at a time, on a clock of its own time.

In: a running child, the seconds that all its answers together may take. Out: its answers; `ChildEnded`,
whose `Exit` says how the process ended, and the outcome that this is. Time in which the process was ready but
waited for a core passes on a busy machine, and is not its own; neither is that of a compiler, as far as the
owner knows of it.
"""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from pipeline.records.outcome import Outcome
from pipeline.sandbox.processes.fork_server import Child
from pipeline.sandbox.processes.scheduling_delay import waited
from pipeline.sandbox.processes.supervisor import Exit, ExitKind

EXIT_OUTCOMES: Mapping[ExitKind, Outcome] = {
    "ok": Outcome.CRASHED,
    "error": Outcome.CRASHED,
    "crashed": Outcome.CRASHED,
    "timeout": Outcome.TIMEOUT,
    "out_of_memory": Outcome.OUT_OF_MEMORY,
    "output_limit": Outcome.OUTPUT_LIMIT,
    "process_limit": Outcome.TAMPERED,
}
"""What it means that a process ended in this way before its last answer."""


class ChildSession:
    """The owner's side of one child."""

    def __init__(
        self,
        child: Child,
        answers: Any,
        *,
        seconds: float = math.inf,
        compiled: Callable[[], float] = lambda: 0.0,
        compile_seconds: float = 0.0,
    ) -> None:
        """`compiled`: when the last binary was finished (`time.time`); all before it counts as compiling.

        `compile_seconds`: so long at most.
        """
        self._child = child
        self._compiled = compiled
        self._compile_left = compile_seconds
        self._answers = answers
        """The type of all answers."""
        self.left = seconds
        """Seconds of its own time that it may still take."""
        self.spent = 0.0
        """Seconds of its own time that it has taken."""
        self.process: int | None = None
        """Its id, once it is known: from then on, waiting for a core does not count."""

    def ask(self, message: object, *, at_most: float = math.inf) -> Any:
        """Send a message and wait for the answer, for so many seconds and no longer than is left.

        None: wait for one more answer to what was asked before.
        """
        limit = max(min(self.left, at_most), 0.0)
        started, waited_before = time.monotonic(), self._waited()
        began = time.time()

        def own() -> float:
            waiting = self._waited() - waited_before
            return max(time.monotonic() - started - waiting - self._compiling(began), 0.0)

        try:
            if message is not None:
                self._child.send(message)
            return self._child.receive(limit, self._answers, more=lambda: limit - own())
        finally:
            spent = own()
            self._compile_left -= self._compiling(began)
            self.left -= spent
            self.spent += spent

    def stop(self) -> Exit:
        """End the process; how it ended."""
        return self._child.stop()

    def _compiling(self, began: float) -> float:
        return min(max(self._compiled() - began, 0.0), self._compile_left)

    def _waited(self) -> float:
        return 0.0 if self.process is None else waited(self.process)
