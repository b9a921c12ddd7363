"""Run stages as processes, in parallel within the available cores: commands in, how each ended out."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pipeline.records.environment import that_end_with_this
from pipeline.records.record import Record

POLL_SECONDS = 0.02
STOP_SECONDS = 10.0  # a stage that is told to end kills what it started
TIME_IS_UP = "time is up"
WORDS = 300  # letters of an error in a table


class FinishedStage(Record, frozen=True, kw_only=True):
    """A stage that ran for a key and a round, or whose output was there already."""

    stage: str
    key: str
    round: int
    seconds: float
    """Wall time of its process; 0 if an earlier start of the same run had done it."""
    error: str | None = None
    """Why there is no output: its last line."""


class Command(Record, frozen=True, kw_only=True):
    """A stage to run for a key and a round."""

    stage: str
    """Its module."""
    key: str
    round: int
    arguments: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    """Files of other stages that it reads."""
    output: str | None
    """The file that it writes; if it is there already, nothing runs. None: it writes none."""
    log: str
    prepare: tuple[str, ...] = ()
    """Option of `pipeline.execution.workers.submit` for the process that it runs in."""
    cores: int = 1
    """How many it can use."""
    folder: str | None = None
    """Where it runs; None: in the current folder."""

    @property
    def done(self) -> bool:
        """Whether an earlier start wrote the output: files are written whole or not at all."""
        return self.output is not None and Path(self.output).is_file()

    @property
    def succeeded(self) -> bool:
        """Whether a process that ended with code 0 did its work."""
        return self.output is None or self.done


def launcher(command: Command) -> list[str]:
    """The warm worker has torch imported; the stage ends with the process that submitted it."""
    submit = [sys.executable, "-m", "pipeline.execution.workers.submit"]
    return [*submit, *command.prepare, command.stage, *command.arguments]


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
                cwd=command.folder,
                env=that_end_with_this(),
            )

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def job(self, error: str | None) -> FinishedStage:
        command = self.command
        seconds = time.monotonic() - self.started
        return FinishedStage(
            stage=command.stage, key=command.key, round=command.round, seconds=seconds, error=error
        )


def run_all(
    commands: Sequence[Command], *, cores: int, deadline: float | None, say: Callable[[str], None]
) -> list[FinishedStage]:
    """Run commands side by side, in their order, as far as the cores go; none is in the way of another.

    A command that fails is data. After `deadline` (of the monotonic clock) what runs is stopped, and what
    waits is not started; `say` gets a line for each that ended.
    """
    waiting, running, jobs = list(commands), list[_Running](), list[FinishedStage]()
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


def found(command: Command) -> FinishedStage:
    """The job of a command whose output is there already."""
    return FinishedStage(stage=command.stage, key=command.key, round=command.round, seconds=0.0)


def _ended(each: _Running, *, late: bool) -> FinishedStage | None:
    code = each.process.poll()
    if code is None and not late:
        return None
    if code is None:
        each.stop()
        return each.job(None if each.command.done else TIME_IS_UP)
    if code == 0 and each.command.succeeded:
        return each.job(None)
    return each.job(
        f"{each.command.stage} ended with code {code}: {_last_words(each.command) or 'it said nothing'}"[
            :WORDS
        ]
    )


def _not_started(command: Command) -> FinishedStage:
    error = f"{TIME_IS_UP}: not started"
    return FinishedStage(stage=command.stage, key=command.key, round=command.round, seconds=0.0, error=error)


def _last_words(command: Command) -> str | None:
    try:
        lines = [line.strip() for line in Path(command.log).read_text(errors="replace").splitlines()]
    except OSError:
        return None
    return next((line for line in reversed(lines) if line), None)


def _tell(say: Callable[[str], None], command: Command, job: FinishedStage) -> None:
    line = f"{command.key}: {job.error}" if job.error else _last_words(command)
    if line:
        say(line)
