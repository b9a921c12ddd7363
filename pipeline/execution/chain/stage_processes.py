"""Processes of stages: command lines in, side by side within the cores, how each ended out."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pipeline.execution.bundle.manifest import BundledJob
from pipeline.records.record import Record
from pipeline.sandbox.processes.supervisor import die_with_parent

POLL_SECONDS = 0.02
STOP_SECONDS = 10.0  # a stage that is told to end kills what it started
TIME_IS_UP = "time is up"
WORDS = 300  # letters of an error in a table


class Command(Record, frozen=True, kw_only=True):
    """One stage to run for one key and round."""

    stage: str
    key: str
    round: int
    arguments: tuple[str, ...]
    output: str
    """The file that it writes; where it is there already, nothing runs."""
    log: str
    cores: int = 1
    """How many it can use."""

    @property
    def done(self) -> bool:
        """Whether an earlier start wrote the output: files are written whole or not at all."""
        return Path(self.output).is_file()


def launcher(command: Command) -> list[str]:
    """The warm worker has torch already; it ends with whoever submits, and the stage with it."""
    return [sys.executable, "-m", "pipeline.execution.workers.submit", command.stage, *command.arguments]


class _Running:
    def __init__(self, command: Command) -> None:
        self.command = command
        self.started = time.monotonic()
        log = Path(command.log)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as stream:
            self.process = subprocess.Popen(
                launcher(command),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent,  # noqa: PLW1509  (there are no threads here)
            )

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def job(self, error: str | None) -> BundledJob:
        command = self.command
        seconds = time.monotonic() - self.started
        return BundledJob(
            stage=command.stage, key=command.key, round=command.round, seconds=seconds, error=error
        )


def run_all(
    commands: Sequence[Command], *, cores: int, deadline: float | None, say: Callable[[str], None]
) -> list[BundledJob]:
    """Run commands side by side, in their order, as far as the cores go; none is in the way of another.

    A command that fails is data. After `deadline` (of the monotonic clock) what runs is stopped, and what
    waits is not started; `say` gets a line for each that ended.
    """
    waiting, running, jobs = list(commands), list[_Running](), list[BundledJob]()
    try:
        while waiting or running:
            late = deadline is not None and time.monotonic() > deadline
            if late:
                jobs += [_not_started(command) for command in waiting]
                waiting = []
            free = cores - sum(min(each.command.cores, cores) for each in running)
            while waiting and min(waiting[0].cores, cores) <= free:
                command = waiting.pop(0)
                running.append(_Running(command))
                free -= min(command.cores, cores)
            for each in list(running):
                job = _ended(each, late=late)
                if job is not None:
                    running.remove(each)
                    jobs.append(job)
                    _tell(say, each.command, job)
            time.sleep(POLL_SECONDS if running else 0)
    finally:
        for each in running:
            each.stop()
    return jobs


def found(command: Command) -> BundledJob:
    """The job of a command whose output is there already."""
    return BundledJob(stage=command.stage, key=command.key, round=command.round, seconds=0.0)


def _ended(each: _Running, *, late: bool) -> BundledJob | None:
    code = each.process.poll()
    if code is None and not late:
        return None
    if code is None:
        each.stop()
        return each.job(None if each.command.done else TIME_IS_UP)
    if code == 0 and each.command.done:
        return each.job(None)
    return each.job(
        f"{each.command.stage} ended with code {code}: {_last_words(each.command) or 'it said nothing'}"[
            :WORDS
        ]
    )


def _not_started(command: Command) -> BundledJob:
    error = f"{TIME_IS_UP}: not started"
    return BundledJob(stage=command.stage, key=command.key, round=command.round, seconds=0.0, error=error)


def _last_words(command: Command) -> str | None:
    try:
        lines = [line.strip() for line in Path(command.log).read_text(errors="replace").splitlines()]
    except OSError:
        return None
    return next((line for line in reversed(lines) if line), None)


def _tell(say: Callable[[str], None], command: Command, job: BundledJob) -> None:
    line = f"{command.key}: {job.error}" if job.error else _last_words(command)
    if line:
        say(line)
