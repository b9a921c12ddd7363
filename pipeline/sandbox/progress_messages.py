"""How far a job is: datagrams to the command that shows the run. Nothing is sent if none listens."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from pipeline.records import environment
from pipeline.records.outcome import Failure, Outcome

SEND_SECONDS = 1.0
NEUTRAL = frozenset(
    {
        *(Outcome.PASSED, Outcome.PASSED_REDUCED, Outcome.PRUNED, Outcome.SCREENED),
        *(Outcome.NOT_RECORDED, Outcome.DEVICE_UNAVAILABLE),
    }
)
"""Outcomes that are no fault of a variant."""


def send(address: str, message: Mapping[str, object]) -> None:
    """Send one message; a reader that is gone or does not read is no error: progress is only shown."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.settimeout(SEND_SECONDS)
        channel.sendto(json.dumps(message).encode(), address)


class StageProgress:
    """Counts the variants that a stage has finished; several threads may report."""

    def __init__(
        self,
        output: Path,
        total: int,
        *,
        known: Iterable[object] = (),
        time_limit: float = 0.0,
        limits: str = "",
    ) -> None:
        """`known`: results of those, of the total, that are there already.

        `time_limit`: seconds that one attempt of a variant has; 0: not known. `limits`: what there is to say
        of limits if no time follows from them at which a variant ends.
        """
        self._address = environment.front_address()
        environment.forget_front()
        self._output, self._total, self._time_limit = str(output), total, time_limit
        self._limits = limits
        earlier = list(known)
        self._finished, self._failed = len(earlier), sum(map(_is_failed, earlier))
        self._lock = threading.Lock()
        self._report()

    def finished(self, result: object, *, count: int = 1) -> None:
        """One more variant, or several equal ones; `result` is what its record holds, or its outcome."""
        with self._lock:
            self._finished += count
            self._failed += count * _is_failed(result)
            self._report()

    def _report(self) -> None:
        if self._address is not None:
            counts = {"done": self._finished, "total": self._total, "failed": self._failed}
            message = {"event": "variants", "output": self._output, **counts}
            send(self._address, {**message, "time_limit": self._time_limit, "limits": self._limits})


def _is_failed(result: object) -> bool:
    outcome = result.outcome if isinstance(result, Failure) else result
    return isinstance(outcome, Outcome) and outcome not in NEUTRAL
