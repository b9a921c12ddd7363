"""Stages outside of Snakemake: their command lines for concrete keys, and the processes that run them.

Snakemake's rules have the same lines, with wildcards in place of keys and files.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from pipeline.records.environment import that_end_with_this
from pipeline.records.planning.planned_tasks import PlannedTask
from pipeline.records.record import Record
from pipeline.stages.table import STAGES, Input, Stage, final, rounds

POLL_SECONDS = 0.02
STOP_SECONDS = 10.0  # a terminated stage first kills the processes that it started
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
    title: str = ""
    """`softmax bert_base cpu`; nothing where it is not of one task."""

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
    said = (_last_words(each.command) or "it said nothing").removeprefix("error: ")
    return each.job(f"{each.command.stage} ended with code {code}: {said}"[:WORDS])


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
    said = _last_words(command) or ""
    if command.title:
        name = f"{command.stage.rpartition('.')[2]} {command.title}"
        say(f"{name}: {job.error or said.partition(': ')[2] or said}")
    elif job.error or said:
        say(f"{command.key}: {job.error}" if job.error else said)


SUBMIT = "python -m pipeline.execution.workers.submit"


class StageCommands:
    """Makes the commands of one artifact store."""

    def __init__(self, root: Path, cores: int, *, store: Path | None = None) -> None:
        """`root` is where specs and outputs are; `store` holds the entries, by default the same folder."""
        self._root = root
        self._store = root if store is None else store
        self._cores = cores

    def of_task(self, task: PlannedTask) -> Iterator[Command]:
        """All of them, round by round."""
        for number in range(task.row.rounds):
            for stage in rounds():
                yield self.of_round(stage.name, task, number)

    def of_round(self, stage: str, task: PlannedTask, number: int) -> Command:
        """One stage of one round."""
        keys = {each.name: getattr(task.row, each.name) for each in rounds()}
        command = self.of_keys(stage, keys, number=number, variants=task.proposed)
        title = f"{task.row.kernel} {task.row.workload} {task.row.hardware}"
        return msgspec.structs.replace(command, title=title)

    def mutate(self, key: str) -> Command:
        """Mutation, which there is once for an implementation."""
        return self.of_keys("mutate", {"mutate": key})

    def final(self, key: str) -> tuple[Command, ...]:
        """Tables, MLflow, report, and the report in MLflow."""
        keys = {each.name: key for each in final()}
        return tuple(self.of_keys(each.name, keys) for each in final())

    def of_keys(
        self, name: str, keys: Mapping[str, str], *, number: int = 0, variants: int | None = None
    ) -> Command:
        """One stage; `keys` has its own key and those of the stages that it reads."""
        stage, key = STAGES[name], keys[name]
        # What writes no file is done when the last file that it reads is there; it always runs.
        output = stage.output_path(self._root, key, number) if stage.file else None
        files = {
            each.name: self._files(each, keys, number) for each in stage.inputs if each.given != "by spec"
        }
        cores = {"one": 1, "all": self._cores, "variants": min(variants or self._cores, self._cores)}
        workers = max(1, self._cores if stage.device else cores[stage.cores])
        spec = str(stage.spec_path(self._root, key))
        arguments = stage.arguments(
            spec=spec,
            out=str(output),
            root=str(self._store),
            inputs={each.name: _given(each, files[each.name]) for each in stage.inputs if each.name in files},
            round=str(number),
            workers=str(workers),
        )
        return Command(
            stage=stage.program,
            key=key,
            round=number,
            prepare=() if stage.worker is None else (stage.worker, spec),
            arguments=arguments,
            inputs=tuple(str(path) for several in files.values() for path in several),
            output=None if output is None else str(output),
            log=str(stage.log_path(self._root, key, number)),
            cores=workers,
        )

    def _files(self, wanted: Input, keys: Mapping[str, str], number: int) -> list[Path]:
        numbers = range(number) if wanted.rounds == "earlier" else [number]
        return [
            STAGES[stage].output_path(self._root, keys[stage], each)
            for each in numbers
            for stage in wanted.stages
        ]


def shell_line(*names: str) -> str:
    """The shell command of a rule that runs these stages one after the other, for Snakemake to fill in.

    The rule has the inputs and the output of the first one; the others read these.
    """
    first = STAGES[names[0]]
    places = {each.stages: _placeholder(each) for each in first.inputs} | {(first.name,): "{output}"}
    commands = [_shell_command(STAGES[name], places) for name in names]
    line = commands[0] if len(commands) == 1 else f"{{{{ {' && '.join(commands)}; }}}}"
    return f"{line} 2>&1 | tee {{log}} >&2"


def _shell_command(stage: Stage, places: Mapping[tuple[str, ...], str]) -> str:
    prepare = [] if stage.worker is None else [stage.worker, "{input.spec}"]
    arguments = stage.arguments(
        spec="{input.spec}",
        out="{output}",
        root="artifacts",
        inputs={each.name: [places[each.stages]] for each in stage.inputs},
        round="{wildcards.round}",
        workers="{threads}",
    )
    return " ".join([SUBMIT, *prepare, stage.program, *arguments])


def _placeholder(wanted: Input) -> str:
    if wanted.given == "stage folder":
        return f"artifacts/{wanted.stages[0]}"
    return f"$(dirname {{input.{wanted.name}}})" if wanted.given == "folder" else f"{{input.{wanted.name}}}"


def _given(wanted: Input, files: list[Path]) -> list[str]:
    if wanted.given == "folder":
        return [str(path.parent) for path in files]
    return [str(path) for path in files]
