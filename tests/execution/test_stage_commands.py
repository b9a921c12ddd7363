"""Processes of stages: side by side, within a time, and none takes the others down."""

import sys
import time
from pathlib import Path

import pytest

from pipeline.execution import stage_commands
from pipeline.execution.stage_commands import TIME_IS_UP, Command, run_all


@pytest.fixture(autouse=True)
def plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs instead of stages."""
    program = [sys.executable, "-c"]
    monkeypatch.setattr(stage_commands, "launcher", lambda command: [*program, command.arguments[0]])


def command(folder: Path, name: str, program: str, cores: int = 1) -> Command:
    """A program that writes its output at its end unless it fails."""
    output = folder / f"{name}.json"
    whole = f"{program}\nopen({str(output)!r}, 'w').close()\nprint('{name} is done')"
    log = str(folder / "logs" / f"{name}.log")
    return Command(
        stage=name, key=name, round=0, arguments=(whole,), output=str(output), log=log, cores=cores
    )


def run(*commands: Command, cores: int = 2, seconds: float | None = None) -> tuple[dict, list[str]]:
    """Errors by key, and the lines that were said."""
    lines: list[str] = []
    deadline = None if seconds is None else time.monotonic() + seconds
    done = run_all(commands, cores=cores, deadline=deadline, say=lines.append)
    return {job.key: job.error for job in done}, lines


def meeting(folder: Path, name: str, other: str) -> str:
    """A program that says when it began and ended, and ends once the other one has begun, or in vain."""
    return f"""
import pathlib, time
print(time.monotonic(), flush=True)
folder, latest = pathlib.Path({str(folder)!r}), time.monotonic() + 20
(folder / "{name} is here").touch()
while not (folder / "{other} is here").exists() and time.monotonic() < latest:
    time.sleep(0.01)
print(time.monotonic())"""


def test_one_failure_is_not_the_end(tmp_path: Path) -> None:
    """Its last words are its error; the others run."""
    errors, lines = run(
        command(tmp_path, "bad", "raise RuntimeError('a bug')"),
        command(tmp_path, "killed", "import os; os.kill(os.getpid(), 9)"),
        command(tmp_path, "good", ""),
    )
    assert errors["bad"] == "bad ended with code 1: RuntimeError: a bug"
    assert errors["killed"] == "killed ended with code -9: it said nothing"
    assert errors["good"] is None and "good is done" in lines


def test_without_its_output_it_failed(tmp_path: Path) -> None:
    """An exit code of 0 is not enough."""
    errors, _ = run(command(tmp_path, "quiet", "raise SystemExit(0)"))
    assert errors["quiet"] == "quiet ended with code 0: it said nothing"


def test_side_by_side_within_the_cores(tmp_path: Path) -> None:
    """Two of one core overlap; one that wants all waits for them, and is alone."""
    names = {"a": "b", "b": "a", "all": "a"}
    run(
        *(
            command(tmp_path, name, meeting(tmp_path, name, other), cores=9 if name == "all" else 1)
            for name, other in names.items()
        )
    )
    spans = {
        name: [float(line) for line in (tmp_path / "logs" / f"{name}.log").read_text().split()[:2]]
        for name in names
    }
    assert spans["a"][0] < spans["b"][1] and spans["b"][0] < spans["a"][1]
    assert spans["all"][0] > max(spans["a"][1], spans["b"][1])


def test_when_time_is_up(tmp_path: Path) -> None:
    """What runs is stopped, what waits is not started, what is done stays done."""
    errors, _ = run(
        command(tmp_path, "short", ""),
        command(tmp_path, "long", "import time; time.sleep(60)"),
        command(tmp_path, "waiting", ""),
        cores=1,
        seconds=1.5,
    )
    assert errors == {"short": None, "long": TIME_IS_UP, "waiting": f"{TIME_IS_UP}: not started"}
    assert not (tmp_path / "waiting.json").exists()
