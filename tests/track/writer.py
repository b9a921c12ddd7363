"""A writer's process: the arguments of the track stage and a log file in, the stage's exit code out.

Writers are forked from one process that has imported what the stage imports, which takes
`python -m pipeline.stages.track` more than two seconds of CPU time for each.
"""

import multiprocessing
import os
import sys
from collections.abc import Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from pipeline.records import environment

environment.mlflow_defaults()  # read at MLflow's import

import mlflow.store.db.utils  # noqa: E402
import mlflow.store.model_registry.rest_store  # noqa: E402
import mlflow.store.model_registry.sqlalchemy_store  # noqa: E402
import mlflow.store.tracking.rest_store  # noqa: E402
import mlflow.store.tracking.sqlalchemy_store  # noqa: E402, F401

from pipeline.stages import track  # noqa: E402

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__])


class Writer:
    """The process, in a session of its own so that it can be killed whole."""

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        self._log = log
        self._process: ForkServerProcess = _CONTEXT.Process(target=_write, args=(list(arguments), str(log)))
        self._process.start()

    @property
    def pid(self) -> int:
        """Of the process and its group."""
        assert self._process.pid is not None
        return self._process.pid

    def goes_on(self) -> bool:
        """Whether it has not ended."""
        return self._process.is_alive()

    def end(self, seconds: float) -> tuple[int, str]:
        """Wait; the exit code, and all that it said."""
        self._process.join(seconds)
        code = self._process.exitcode
        assert code is not None, f"goes on after {seconds:.0f} s: {self._log.read_text()}"
        return code, self._log.read_text()


def _write(arguments: list[str], log: str) -> None:
    os.setsid()
    stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(stream, 1)
    os.dup2(stream, 2)
    sys.exit(track.main(arguments))
