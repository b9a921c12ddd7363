"""What a candidate may take is said while one waits for it, and in the verdict on one that takes longer."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipeline.records.configuration.stage_settings import Verify
from pipeline.sandbox.processes.fork_server import ChildEnded
from pipeline.sandbox.processes.supervisor import Exit
from pipeline.verify.harness.session import ModelSubject, ProcessEnded, Session, time_allowed
from tests.verify.harness.problems import SETTINGS

LIMIT = "verify.time_limit=60"


@pytest.mark.parametrize(
    ("builds", "spent", "reason"),
    [
        (False, 0.0, f"20 s of its own time: one call may take a third of {LIMIT}"),
        (False, 50.0, f"10 s of its own time: what was left of {LIMIT}"),
        (
            True,
            0.0,
            "120 s of its own time: one call may take a third of 360 s"
            f" ({LIMIT}, and 300 s more for what it builds)",
        ),
    ],
)
def test_of_a_verdict(tmp_path: Path, builds: bool, spent: float, reason: str) -> None:
    """The limit that was met, and where it comes from."""
    session = hanging(tmp_path, builds=builds)
    session._child.left -= spent
    with pytest.raises(ProcessEnded) as caught:
        session.call(cast("Any", None), "seed 1")
    assert caught.value.failure.reason == f"not finished after {reason} (seed 1)"


def test_of_a_candidate_that_is_loaded(tmp_path: Path) -> None:
    """It may take all that there is."""
    with pytest.raises(ProcessEnded, match=f"^not finished after 60 s .*: what was left of {LIMIT} "):
        hanging(tmp_path, builds=False).construct(cast("Any", None), "while it was constructed")


def test_while_one_waits() -> None:
    """The same numbers."""
    text = "60 s of its own time (verify.time_limit), 20 s in one call"
    assert time_allowed(SETTINGS, builds=False) == text
    assert time_allowed(SETTINGS, builds=True) == f"{text}; 360 s and 120 s if it may build an extension"


def hanging(tmp_path: Path, *, builds: bool) -> Session:
    """A session whose process answers nothing until its time is over."""
    settings: Verify = SETTINGS

    def receive(*_: object, **__: object) -> None:
        raise ChildEnded(Exit(kind="timeout", code=0, detail=""))

    child = SimpleNamespace(send=lambda _: None, receive=receive)
    subject = SimpleNamespace(settings=settings, builds=builds, on_host=True)
    return Session(
        cast("Any", SimpleNamespace(start=lambda *_, **__: child)),
        cast("ModelSubject", subject),
        cast("Any", SimpleNamespace(size=0, descriptor=0)),
        log=tmp_path / "log.txt",
        scratch=tmp_path,
    )
