"""Command lines of the stages, as Snakemake's rules have them: a plan's task in, Commands out."""

from collections.abc import Iterator
from pathlib import Path

from pipeline.execution.chain.stage_processes import Command
from pipeline.records.layout import output_path, spec_path
from pipeline.records.planning.planned_tasks import PlannedTask


class StageCommands:
    """Makes the commands of one artifact store."""

    def __init__(self, root: Path, cores: int) -> None:
        self._root = root
        self._cores = cores

    def prepare(self, task: PlannedTask, number: int) -> tuple[Command, Command]:
        """generate and compile of one round: they need no quiet machine."""
        return self._generate(task, number), self._compile(task, number)

    def measure(self, task: PlannedTask, number: int) -> tuple[Command, Command]:
        """verify and profile of one round."""
        return self._verify(task, number), self._profile(task, number)

    def of_task(self, task: PlannedTask) -> Iterator[Command]:
        """All of them."""
        for number in range(task.row.rounds):
            yield from self.prepare(task, number)
            yield from self.measure(task, number)

    def mutate(self, key: str) -> Command:
        """mutate, which there is once for an implementation."""
        output = self._root / "mutate" / f"{key}.json"
        arguments = ("--workers", str(self._cores))
        return self._command("mutate", key, arguments, output=output, cores=self._cores)

    def closing(self, stage: str, key: str, name: str, *arguments: str) -> Command:
        """aggregate, track or report of a plan; `name` is the file that it writes."""
        output = self._root / stage / key / name
        return self._command(stage, key, arguments, output=output, spec="aggregate")

    def _generate(self, task: PlannedTask, number: int) -> Command:
        earlier = (
            str(self._output(stage, task, each))
            for each in range(number)
            for stage in ("compile", "verify", "profile")
        )
        return self._stage("generate", task, number, ("--history", *earlier, "--round", str(number)))

    def _compile(self, task: PlannedTask, number: int) -> Command:
        workers = max(1, min(task.proposed, self._cores))
        variants = str(self._output("generate", task, number))
        arguments = ("--variants", variants, "--workers", str(workers))
        return self._stage("compile", task, number, arguments, cores=workers)

    def _verify(self, task: PlannedTask, number: int) -> Command:
        compiled = str(self._output("compile", task, number))
        arguments = ("--compiled", compiled, "--workers", str(self._cores))
        return self._stage("verify", task, number, arguments, cores=self._cores)

    def _profile(self, task: PlannedTask, number: int) -> Command:
        compiled, verified = (str(self._output(stage, task, number)) for stage in ("compile", "verify"))
        arguments = ("--compiled", compiled, "--verified", verified)
        return self._stage("profile", task, number, arguments, cores=self._cores)

    def _stage(
        self, stage: str, task: PlannedTask, number: int, arguments: tuple[str, ...], *, cores: int = 1
    ) -> Command:
        output = self._output(stage, task, number)
        key = getattr(task.row, stage)
        return self._command(stage, key, arguments, output=output, number=number, cores=cores)

    def _command(  # noqa: PLR0913  (the parts of one record)
        self,
        stage: str,
        key: str,
        arguments: tuple[str, ...],
        *,
        output: Path,
        spec: str | None = None,
        number: int = 0,
        cores: int = 1,
    ) -> Command:
        spec_file = str(spec_path(self._root, spec or stage, key))
        return Command(
            stage=stage,
            key=key,
            round=number,
            arguments=("--spec", spec_file, *arguments, "--out", str(output), "--root", str(self._root)),
            output=str(output),
            log=str(log_path(self._root, stage, key, number)),
            cores=cores,
        )

    def _output(self, stage: str, task: PlannedTask, number: int) -> Path:
        return output_path(self._root, stage, getattr(task.row, stage), number)


def log_path(root: Path, stage: str, key: str, number: int) -> Path:
    """Where a stage's process writes, as under Snakemake."""
    return root / "logs" / stage / key / f"round{number}.log"
