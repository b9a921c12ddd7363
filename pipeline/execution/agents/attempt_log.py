"""Logs attempts to MLflow in the order in which they come, in a thread: no verdict waits for it."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from pipeline.records.configuration.stage_settings import Tracking
from pipeline.records.errors import TrackingError
from pipeline.records.results.attempts import Attempt
from pipeline.track.attempt_runs import log_attempt


class AttemptLog:
    """A context manager, which logs what is left before it ends."""

    def __init__(self, tracking: Tracking, root: Path) -> None:
        self._tracking = tracking
        self._root = root
        self._pool = ThreadPoolExecutor(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def put(self, attempt: Attempt, source: str) -> None:
        """Log one soon; MLflow's trouble is one line on standard error, the history has the attempt."""
        self._pool.submit(self._log, attempt, source)

    def _log(self, attempt: Attempt, source: str) -> None:
        try:
            log_attempt(self._tracking, self._root, attempt, source)
        except TrackingError as error:
            print(f"error: {error}", file=sys.stderr, flush=True)
