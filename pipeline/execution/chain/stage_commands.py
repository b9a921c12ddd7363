"""Command lines of the stages for concrete keys: rows of STAGES and a plan's tasks in, Commands out.

Snakemake's rules have the same lines, with wildcards in place of keys and files.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from pipeline.execution.chain.stage_processes import Command
from pipeline.records.planning.planned_tasks import PlannedTask
from pipeline.stages.table import STAGES, Input, Stage, final, rounds

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
        return self.of_keys(stage, keys, number=number, variants=task.proposed)

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
