"""Snakemake in the foreground: it ends with the command that started it."""

import os
import signal
import subprocess
import sys
import time
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


def wait_for(path: Path) -> None:
    """Until it is there, ten seconds at most."""
    for _ in range(200):
        if path.exists():
            return
        time.sleep(0.05)
    raise AssertionError(f"{path.name} did not appear")


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
