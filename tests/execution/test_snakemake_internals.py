"""No second of waiting at the end of a run on one machine; what the user asks for stays."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.cli import get_argument_parser
from snakemake.settings.types import MaxJobsPerTimespan

from pipeline.execution import snakemake_internals
from pipeline.execution.snakemake_internals import start_at_once
from tests.execution.test_snakemake_command import STARTING_SECONDS, session, wait_for
from tests.paths import ROOT

LIMITER = "a limiter"
"""Stands for Snakemake's, whose making needs a workflow."""
SNAKEFILE = """\
import threading
from pipeline.execution.snakemake_internals import start_at_once

onstart:
    start_at_once(workflow)

onsuccess:
    print("waits for", [each for each in threading.enumerate() if isinstance(each, threading.Timer)])

rule all:
    output: "made"
    shell: "touch {output}"
"""

STOPPED = """\
from pipeline.execution.snakemake_internals import stop_at_once

onstart:
    stop_at_once()

rule all:
    output: "made"
    shell: "{{ echo > started; sleep 60; touch {output}; }} 2>&1 | tee log >&2"
"""


def made(limit: MaxJobsPerTimespan | None, *, local: bool = True) -> SimpleNamespace:
    """As much of a workflow as is looked at."""
    return SimpleNamespace(
        local_exec=local,
        scheduling_settings=SimpleNamespace(max_jobs_per_timespan=limit),
        scheduler=SimpleNamespace(job_rate_limiter=LIMITER),
    )


def by_default() -> MaxJobsPerTimespan:
    """Snakemake's own."""
    limit = get_argument_parser().parse_args([]).max_jobs_per_timespan
    assert isinstance(limit, MaxJobsPerTimespan)
    return limit


def run(folder: Path, *arguments: str) -> str:
    """A workflow of one job; what it printed."""
    (folder / "Snakefile").write_text(SNAKEFILE)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--quiet", "all", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return ended.stdout + ended.stderr


@pytest.mark.slow
def test_nothing_is_waited_for_after_the_last_job(tmp_path: Path) -> None:
    """No timer of the scheduler is left, for which Python would wait a second before it ends."""
    assert "waits for []" in run(tmp_path)


@pytest.mark.slow
def test_a_limit_that_is_asked_for_works(tmp_path: Path) -> None:
    """Snakemake still looks again where the user set a pace."""
    assert "waits for [<Timer" in run(tmp_path, "--max-jobs-per-timespan", "50/1s")


def test_a_stop_does_not_wait_for_jobs(tmp_path: Path) -> None:
    """A signal to Snakemake alone ends its jobs as well; a second one changes nothing."""
    (tmp_path / "Snakefile").write_text(STOPPED)
    with session([sys.executable, "-m", "snakemake", "--cores", "1"], tmp_path) as process:
        wait_for(tmp_path / "started", STARTING_SECONDS)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)  # to the end of what holds the pipe: the job, too
    assert process.returncode == 1
    assert "Traceback" not in said
    assert not (tmp_path / "made").exists()


def test_the_limit_that_nobody_asked_for_goes() -> None:
    """Snakemake's default is what we take it for."""
    workflow = made(by_default())
    start_at_once(workflow)
    assert workflow.scheduler.job_rate_limiter is None


@pytest.mark.parametrize("asked", ["50/1s", "100/1m"])
def test_what_the_user_asks_for_stays(asked: str) -> None:
    """--max-jobs-per-timespan."""
    workflow = made(MaxJobsPerTimespan.parse_choice(asked))
    start_at_once(workflow)
    assert workflow.scheduler.job_rate_limiter == LIMITER


def test_a_cluster_keeps_its_limit() -> None:
    """Its queue is what the limit is for."""
    workflow = made(by_default(), local=False)
    start_at_once(workflow)
    assert workflow.scheduler.job_rate_limiter == LIMITER


def test_an_unknown_version_keeps_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not tried is left alone: the run is slower by a second."""
    monkeypatch.setattr(snakemake_internals, "TRIED", ("0.0.",))
    workflow = made(by_default())
    start_at_once(workflow)
    assert workflow.scheduler.job_rate_limiter == LIMITER
