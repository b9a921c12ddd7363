"""Results of jobs: the plan and its outputs in; a result per job out, in its folder and as text."""

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pipeline.execution.sweep.sweep_jobs import SweepJob
from pipeline.performance.quantities import digits, rate, seconds
from pipeline.records.layout import STAGES, output_path, spec_path
from pipeline.records.planning.planned_tasks import (
    JobResult,
    Missed,
    Objective,
    Plan,
    PlannedJob,
    Reached,
    Unfinished,
)
from pipeline.records.planning.specs import AggregateSpec, TaskRow
from pipeline.records.record import Record, read_record, to_json
from pipeline.records.results.aggregated import Cell, NotMeasured
from pipeline.records.results.collection import Result, collect
from pipeline.records.results.profiled import Profiled
from pipeline.report.winner_selection import by_cell, find_winners
from pipeline.store.atomic import write_atomic


def job_result(objective: Objective, tasks: Sequence[TaskRow], spec: AggregateSpec, root: Path) -> JobResult:
    """The objective of the job that has these tasks; `spec` is that of the whole sweep.

    Raises
    ------
    StoreError
        An output cannot be read.
    """
    if not tasks:
        return Missed(reason="no cell of its grid is possible")
    for task in tasks:
        for number in range(task.rounds):
            for stage in STAGES:
                key = getattr(task, stage)
                if not output_path(root, stage, key, number).is_file():
                    log = root / "logs" / stage / key / f"round{number}.log"
                    seen = f" ({log})" if log.is_file() else ""
                    return Unfinished(reason=f"{_of_task(task)}: {stage} did not finish{seen}")
    part = msgspec.structs.replace(spec, tasks=tuple(tasks), pruned=(), mutations=())
    return find_objective(objective, collect(part, root).results)


def find_objective(objective: Objective, results: Sequence[Result]) -> Reached | Missed:
    """The number that the results of a job come to."""
    values = []
    for winner, (cell, several) in zip(find_winners(results), by_cell(results).items(), strict=True):
        if isinstance(winner, NotMeasured):
            return Missed(reason=f"{_title(cell)}: {winner.reason}")
        found: float | str = winner.seconds.value
        if objective.quantity != "time":
            found = _best(objective, [result.profiled for result in several if result.profiled])
        if isinstance(found, str):
            return Missed(reason=f"{_title(cell)}: {found}")
        if not found > 0:
            return Missed(reason=f"{_title(cell)}: the {objective.quantity} that was measured is {found:g}")
        values.append(found)
    if not values:
        return Missed(reason="no variant was proposed")
    mean = math.exp(math.fsum(map(math.log, values)) / len(values))
    return Reached(value=mean if len(values) > 1 else values[0], unit=objective.unit)


def _best(objective: Objective, measured: Sequence[Profiled]) -> float | str:
    """The best of a cell's measured variants, or why none has the quantity."""
    if objective.quantity == "energy":
        joules = [each.energy.joules for each in measured if each.energy is not None]
        return min(joules) if joules else _no_energy(measured)
    ratios = [
        entry.speedup.value
        for each in measured
        for entry in each.comparisons
        if entry.baseline == objective.baseline
    ]
    return max(ratios) if ratios else _no_baseline(objective, measured)


def _no_energy(measured: Sequence[Profiled]) -> str:
    reasons = [each.reason for one in measured for each in one.unmeasured if each.quantity == "energy"]
    return f"no energy: {reasons[0]}" if reasons else "no energy: profile.energy_seconds is null"


def _no_baseline(objective: Objective, measured: Sequence[Profiled]) -> str:
    absent = [each for one in measured for each in one.absent if each.baseline == objective.baseline]
    if absent:
        return f"no baseline {objective.baseline}: {absent[0].reason}"
    names = dict.fromkeys(entry.baseline for each in measured for entry in each.comparisons)
    return f"no baseline {objective.baseline} was measured (known: {', '.join(names) or 'none'})"


def _title(cell: Cell) -> str:
    return " x ".join((cell.kernel, cell.workload, cell.hardware))


def _of_task(task: TaskRow) -> str:
    return " x ".join((task.kernel, task.workload, task.hardware, task.optimization))


FILE = "job.json"


class JobRecord(Record, frozen=True, kw_only=True):
    """`job.json` in a job's folder: what it consisted of, and its result."""

    number: int
    overrides: tuple[str, ...]
    objective: Objective
    result: JobResult
    tasks: tuple[str, ...]
    """Identities of its tasks, as the tables of the sweep have them."""
    pruned: tuple[str, ...]
    """Cells that are no task, each with its reason."""
    summary: str
    """Of the whole sweep; there once aggregate has run."""


def find_results(plan: Plan, jobs: Sequence[PlannedJob], *, finished: bool, root: Path) -> list[JobResult]:
    """The result of each job; `finished` says whether Snakemake did all that it was asked for."""
    spec = read_record(spec_path(root, "aggregate", plan.aggregate), AggregateSpec)
    rows = {task.row.task: task.row for task in plan.tasks}
    found: list[JobResult] = []
    for job in jobs:
        result = job_result(job.objective, [rows[task] for task in job.tasks], spec, root)
        if isinstance(result, Missed) and not job.tasks and job.pruned:
            result = Missed(reason=job.pruned[0])
        if isinstance(result, Unfinished) and finished:  # only an earlier stage was asked for
            result = Missed(reason=result.reason)
        found.append(result)
    return found


def job_record(job: SweepJob, planned: PlannedJob, result: JobResult, summary: Path) -> JobRecord:
    """What stands in the job's folder."""
    return JobRecord(
        number=job.number,
        overrides=job.lines,
        objective=planned.objective,
        result=result,
        tasks=planned.tasks,
        pruned=planned.pruned,
        summary=summary.as_posix(),
    )


def write_result(job: SweepJob, planned: PlannedJob, result: JobResult, summary: Path) -> None:
    """Put the result into the job's folder."""
    record = job_record(job, planned, result, summary)
    write_atomic(job.folder / FILE, msgspec.json.format(to_json(record), indent=2))


def results_text(
    jobs: Sequence[SweepJob], planned: Sequence[PlannedJob], results: Sequence[JobResult]
) -> str:
    """A line per job: number, objective or why there is none, overrides that not all jobs have."""
    objectives = dict.fromkeys((each.objective.name, each.objective.direction) for each in planned)
    heading = ", ".join(f"{name} ({direction})" for name, direction in objectives)
    common = [line for line in jobs[0].lines if all(line in job.lines for job in jobs)]
    if len({job.lines for job in jobs}) == 1:  # nothing would be left
        common = []
    rows = [
        (
            str(job.number),
            objective_text(result),
            " ".join(line for line in job.lines if line not in common) or "(no overrides)",
        )
        for job, result in zip(jobs, results, strict=True)
    ]
    width = max(len("job"), *(len(number) for number, _, _ in rows))
    numbers = [text for (_, text, _), result in zip(rows, results, strict=True) if _is_number(result)]
    wide = max(map(len, (heading, *numbers)))
    lines = [f"overrides of all jobs: {' '.join(common)}"] if common else []
    lines.append(f"{'job'.rjust(width)}  {heading.rjust(wide)}  overrides")
    for (number, text, overrides), result in zip(rows, results, strict=True):
        value = text if _is_number(result) else "-"
        reason = "" if _is_number(result) else f"  ({text})"
        lines.append(f"{number.rjust(width)}  {value.rjust(wide)}  {overrides}{reason}")
    return "\n".join(lines)


def objective_text(result: JobResult) -> str:
    """The number with its unit, or the reason."""
    if not isinstance(result, Reached):
        return result.reason
    if result.unit == "s":
        return seconds(result.value)
    return f"{digits(result.value)}x" if result.unit == "x" else rate(result.value, result.unit)


def _is_number(result: JobResult) -> bool:
    return isinstance(result, Reached)
