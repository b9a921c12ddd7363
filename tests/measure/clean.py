"""A fork server whose children are what a stage's children are."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.plan.local_machine import identity, read_machine
from pipeline.sandbox.processes.fork_server import ChildEnded, Limits
from tests.lazy_fork_server import LazyForkServer

SERVER = LazyForkServer(preload=("numpy", "torch"))
THIS_CPU = identity("cpu", read_machine())
"""As tasks name it, so that all tests of a session share the ceilings of this machine."""


def call(function: str, log: Path, *arguments: Any, seconds: float = 120.0) -> Any:
    """Result of `module:function(*arguments)` in a fresh process; its output goes to `log`."""
    limits = Limits(seconds=seconds, output=2 << 30)  # children of the child may have less, not more
    child = SERVER.start("tests.measure.stand_ins:serve_call", limits=limits, log=log)
    try:
        child.send([function, list(arguments)])
        return child.receive(seconds)
    except ChildEnded as ended:
        text = log.read_text() if log.is_file() else ""
        return pytest.fail(f"{function}: {ended}\n{text}")
    finally:
        child.stop()
