"""Run a plan without Snakemake: the plan in, how every job and every task ended out.

What compiles runs side by side first, for all tasks; then each task is verified and measured, alone on the
machine, to its end before the next one begins: when time runs out, the tasks before are whole.
"""

import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pipeline.execution.bundle.bundle_file import TaskEnd
from pipeline.execution.stage_commands import Command, FinishedStage, StageCommands, found, run_all
from pipeline.records.outcome import Failure
from pipeline.records.planning.planned_tasks import Plan, PlannedTask
from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.record import Record
from pipeline.records.results.variant import Generated
from pipeline.stages.table import STAGES, read_round, rounds


class OfflineResult(Record, frozen=True, kw_only=True):
    """A plan that was run as far as it went."""

    jobs: tuple[FinishedStage, ...]
    tasks: tuple[TaskEnd, ...]
    spec: AggregateSpec
    """Of the tasks that finished; the others are listed as left out."""


class OfflineRunner:
    """Runs the jobs of one plan."""

    def __init__(self, plan: Plan, root: Path, *, minutes: float | None = None) -> None:
        self._plan = plan
        self._root = root
        self._cores = len(os.sched_getaffinity(0))
        self._stages = StageCommands(root, self._cores)
        self._deadline = None if minutes is None else time.monotonic() + 60 * minutes
        self._jobs: dict[str, FinishedStage] = {}
        """By output."""

    def run(self, spec: AggregateSpec) -> OfflineResult:
        """Run everything; `spec` is the plan's own, of all tasks."""
        plan = self._plan
        for stage in rounds():
            if stage.ahead:
                self._run([self._stages.of_round(stage.name, task, 0) for task in plan.tasks])
        for task in by_value(plan.tasks):
            self._measure(task)
        for mutation in plan.mutations:
            if mutation.reported:
                self._run([self._stages.mutate(mutation.key)])
        tasks = tuple(self._end(task) for task in plan.tasks)
        return OfflineResult(jobs=tuple(self._jobs.values()), tasks=tasks, spec=self._complete(spec, tasks))

    def _measure(self, task: PlannedTask) -> None:
        for command in self._stages.of_task(task):
            self._run([command])
            if not command.done:
                return

    def _run(self, commands: Sequence[Command]) -> None:
        """Those that are not done yet; tasks may share one."""
        distinct = {command.output: command for command in commands if command.output is not None}
        todo = []
        for output, command in distinct.items():
            if command.done:
                self._jobs.setdefault(output, found(command))
            elif output not in self._jobs and self._has_inputs(command):
                todo.append(command)
        by_place = {(each.stage, each.key, each.round): str(each.output) for each in todo}
        for job in run_all(todo, cores=self._cores, deadline=self._deadline, say=_say):
            self._jobs[by_place[job.stage, job.key, job.round]] = job

    def _has_inputs(self, command: Command) -> bool:
        """Whether what it reads is there: after a failure, what depends on it is not tried."""
        return all(Path(path).is_file() for path in command.inputs)

    def _end(self, task: PlannedTask) -> TaskEnd:
        row = task.row
        return TaskEnd(
            name=" x ".join((row.kernel, row.workload, row.hardware, row.optimization)),
            missing=self._missing(task),
            outcomes=self._outcomes(task),
        )

    def _missing(self, task: PlannedTask) -> str | None:
        for command in self._stages.of_task(task):
            if not command.done:
                job = self._jobs.get(str(command.output))
                return job.error if job and job.error else f"{command.stage} did not run"
        return None

    def _outcomes(self, task: PlannedTask) -> dict[str, dict[str, int]]:
        ended: dict[str, Counter[str]] = {each.name: Counter() for each in rounds() if each.entry}
        for stage, counter in ended.items():
            for number in range(task.row.rounds):
                path = STAGES[stage].output_path(self._root, getattr(task.row, stage), number)
                if path.is_file():
                    output = read_round(stage, path)
                    assert not isinstance(output, Generated)
                    results = [record.result for record in output.records]
                    counter.update(
                        each.outcome.value if isinstance(each, Failure) else "passed" for each in results
                    )
        return {stage: dict(counts) for stage, counts in ended.items()}

    def _complete(self, spec: AggregateSpec, tasks: Sequence[TaskEnd]) -> AggregateSpec:
        ends = list(zip(spec.tasks, tasks, strict=True))
        made = {each.key for each in self._plan.mutations if self._stages.mutate(each.key).done}
        return msgspec.structs.replace(
            spec,
            tasks=tuple(row for row, end in ends if end.missing is None),
            pruned=(*spec.pruned, *(f"{end.name}: {end.missing}" for _, end in ends if end.missing)),
            mutations=tuple(row for row in spec.mutations if row.key in made),
        )


def by_value(tasks: Sequence[PlannedTask]) -> list[PlannedTask]:
    """Every kernel's first task before any kernel's second: if time runs out, every kernel has a result."""
    earlier: Counter[str] = Counter()
    ranks = []
    for number, task in enumerate(tasks):
        ranks.append((earlier[task.row.kernel], number))
        earlier[task.row.kernel] += 1
    return [tasks[number] for _, number in sorted(ranks)]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
