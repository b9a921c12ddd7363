"""A child's own time: what a compiler takes is not counted, as long as binaries appear."""

import time
from pathlib import Path

import pytest

from pipeline.sandbox.processes.child_session import ChildSession
from pipeline.sandbox.processes.fork_server import ChildEnded, ForkServer, Limits

LIMITS = Limits(seconds=20.0, memory=512 << 20, output=1 << 20)


@pytest.mark.parametrize(("compile_seconds", "finished"), [(10.0, True), (0.0, False), (0.2, False)])
def test_time_until_the_last_binary(tmp_path: Path, compile_seconds: float, finished: bool) -> None:
    """A call of 1 s whose last binary is finished after 0.9 s, with 0.5 s of its own."""
    with ForkServer() as server:
        child = server.start("tests.sandbox.children:slow_echo", limits=LIMITS, log=tmp_path / "log")
        began = time.time()
        session = ChildSession(
            child,
            float,
            seconds=0.5,
            compiled=lambda: min(time.time(), began + 0.9),
            compile_seconds=compile_seconds,
        )
        if not finished:
            with pytest.raises(ChildEnded) as ended:
                session.ask(1.0)
            assert ended.value.exit.kind == "timeout"
            return
        assert session.ask(1.0) == 1.0
        assert session.spent < 0.5
        with pytest.raises(ChildEnded):  # the next call finishes no binary
            session.ask(1.0)
