"""Snakemake in the foreground: it ends with the command that started it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pipeline.execution.snakemake_command import check_executors
from pipeline.records.errors import ConfigError
from tests.paths import ROOT

STAND_IN = """#!/bin/sh
trap 'touch told; exit 0' TERM
touch started
while :; do sleep 0.05; done
"""
FRONT = """
import sys
from pipeline.execution.snakemake_command import run_snakemake
sys.executable = sys.argv[1]
run_snakemake([])
"""
SNAKEFILE = """
import os
from pathlib import Path
from pipeline.execution.snakemake_internals import only_progress, stop_at_once

only_progress()
Path("snakemake.process").write_text(str(os.getpid()))

onstart:
    stop_at_once()

rule all:
    output: "made"
    shell: "{{ echo $$ > job.process; sleep 60; touch {output}; }} 2>&1 | tee log >&2"
"""
COMMAND = """
import sys
from pipeline.cli.commands import run
from pipeline.cli.main import main
from pipeline.execution.run_display import JobLabels
from pipeline.execution.snakemake_command import run_snakemake

def start(*_):
    if run_snakemake(["--cores", "1"], labels=JobLabels()).interrupted:
        raise KeyboardInterrupt

run.start = start
sys.exit(main(["run"]))
"""
KEPT = "stopped: finished results are kept, the same command continues"


STARTING_SECONDS = 60.0
"""Until a job of Snakemake runs on a busy machine."""


def wait_for(path: Path, seconds: float = 10.0) -> None:
    """Until it is there."""
    for _ in range(int(seconds / 0.05)):
        if path.exists():
            return
        time.sleep(0.05)
    raise AssertionError(f"{path.name} did not appear")


@contextlib.contextmanager
def session(command: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A command in a session of its own, of which nothing is left afterwards."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def wait_for_end(process: int) -> None:
    """Until it is gone, ten seconds at most."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":  # nobody has asked how it ended
            return
        time.sleep(0.05)
    raise AssertionError(f"process {process} did not end")


def test_killed_it_takes_snakemake_along(tmp_path: Path) -> None:
    """After `kill -9` Snakemake is told to end, with its jobs, as by SIGTERM."""
    stand_in = tmp_path / "snakemake"
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    front = subprocess.Popen([sys.executable, "-c", FRONT, str(stand_in)], cwd=tmp_path, env=environment)
    try:
        wait_for(tmp_path / "started")
        assert not (tmp_path / "told").exists()
        front.send_signal(signal.SIGKILL)
        wait_for(tmp_path / "told")
    finally:
        front.kill()
        front.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_killed_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    """Snakemake does not wait for its jobs, nor for a pipe that nobody reads any more."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    with session([sys.executable, "-c", COMMAND], tmp_path) as command:
        wait_for(tmp_path / "job.process", STARTING_SECONDS)
        command.send_signal(number)
        _, said = command.communicate(timeout=20)
        for name in ("snakemake", "job"):
            wait_for_end(int((tmp_path / f"{name}.process").read_text()))
    if number is signal.SIGTERM:
        assert command.returncode == 143
        assert said.splitlines()[-1] == KEPT


def test_an_executor_that_is_not_installed(tmp_path: Path) -> None:
    """One line that says what to install, instead of Snakemake's usage; one that is there is fine."""
    profile = tmp_path / "profile.yaml"
    profile.write_text("jobs: 1\nexecutor: no-such-one # a cluster\n")
    for arguments in (["--profile", str(tmp_path)], ["-n", f"--workflow-profile={tmp_path}"]):
        with pytest.raises(ConfigError, match="no-such-one is not installed: pip install snakemake-exec"):
            check_executors(arguments)
    profile.write_text("executor: local\n")
    check_executors(["--profile", str(tmp_path)])
    check_executors(["--profile"])
