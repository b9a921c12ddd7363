"""Processes that have torch's compiler imported: for jobs of the warm worker alone."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.measure import inductor
from pipeline.workers.sandbox import ForkServer

PROGRAM = """
import sys
from pipeline.measure import inductor
inductor.load()
import torch
print(torch._inductor.config.compile_threads, "torch._inductor.compile_fx" in sys.modules)
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Nothing is started; what was asked for."""
    found: list[str] = []

    def fork_server(worker: Path, prepare: str) -> Any:
        found.extend((str(worker), prepare))

    monkeypatch.setattr(inductor, "fork_server", fork_server)
    return found


def test_not_in_a_warm_job(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage that runs by itself, and one on a cluster's node, start no process that could outlive them."""
    monkeypatch.delenv("KERNELMILL_WARM", raising=False)
    assert inductor.warm_server() is None
    monkeypatch.setenv("KERNELMILL_WARM", "/tmp/worker.sock")
    monkeypatch.setenv("KERNELMILL_ON_NODE", "1")
    assert inductor.warm_server() is None
    assert asked == []


def test_in_a_warm_job(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for; where there can be none, the job goes on without."""
    monkeypatch.setenv("KERNELMILL_WARM", "/tmp/worker.sock")
    monkeypatch.delenv("KERNELMILL_ON_NODE", raising=False)
    assert inductor.warm_server() is None
    assert asked == ["/tmp/worker.sock", "pipeline.measure.inductor:load"]
    module, _, name = inductor.PREPARE.partition(":")
    assert getattr(sys.modules[module], name) is inductor.load


def test_the_server_is_of_the_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the warm worker hands out is what the baselines are forked from."""
    control = object()
    monkeypatch.setenv("KERNELMILL_WARM", "/tmp/worker.sock")
    monkeypatch.delenv("KERNELMILL_ON_NODE", raising=False)
    monkeypatch.setattr(inductor, "fork_server", lambda worker, prepare: control)
    monkeypatch.setattr(ForkServer, "at", lambda given: ("at", given))
    assert inductor.warm_server() == ("at", control)


def test_loading_starts_no_pool_of_compilers() -> None:
    """Which would take longer than the one file that there is to build."""
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["1", "True"]
