"""What came of the jobs: the plan and its outputs in; a result per job out, in its folder and as text."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from pipeline.execution.sweep.sweep_jobs import SweepJob
from pipeline.performance.quantities import digits, rate, seconds
from pipeline.records.layout import spec_path
from pipeline.records.planning.objective import JobResult, Missed, Objective, Reached, Unfinished
from pipeline.records.planning.planned_tasks import Plan, PlannedJob
from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.record import Record, read_record, to_json
from pipeline.report.sweep_objective import job_result
from pipeline.store.atomic import write_atomic

FILE = "job.json"


class JobRecord(Record, frozen=True, kw_only=True):
    """`job.json` in a job's folder: what it consisted of and what came of it."""

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


def write_result(job: SweepJob, planned: PlannedJob, result: JobResult, summary: Path) -> None:
    """Put the result into the job's folder."""
    record = JobRecord(
        number=job.number,
        overrides=job.lines,
        objective=planned.objective,
        result=result,
        tasks=planned.tasks,
        pruned=planned.pruned,
        summary=summary.as_posix(),
    )
    write_atomic(job.folder / FILE, msgspec.json.format(to_json(record), indent=2))


def results_text(
    jobs: Sequence[SweepJob], planned: Sequence[PlannedJob], results: Sequence[JobResult]
) -> str:
    """A line per job: number, objective or why there is none, overrides."""
    objectives = dict.fromkeys((each.objective.name, each.objective.direction) for each in planned)
    heading = ", ".join(f"{name} ({direction})" for name, direction in objectives)
    rows = [
        (str(job.number), objective_text(result), " ".join(job.lines) or "(no overrides)")
        for job, result in zip(jobs, results, strict=True)
    ]
    width = max(len(number) for number, _, _ in rows)
    wide = max(
        (len(text) for (_, text, _), result in zip(rows, results, strict=True) if _is_number(result)),
        default=1,
    )
    lines = []
    for (number, text, overrides), result in zip(rows, results, strict=True):
        value = text if _is_number(result) else "-"
        reason = "" if _is_number(result) else f"  ({text})"
        lines.append(f"{number.rjust(width)}  {value.rjust(wide)}  {overrides}{reason}")
    return "\n".join([f"job, {heading}, overrides", *lines])


def objective_text(result: JobResult) -> str:
    """The number with its unit, or the reason."""
    if not isinstance(result, Reached):
        return result.reason
    if result.unit == "s":
        return seconds(result.value)
    return f"{digits(result.value)}x" if result.unit == "x" else rate(result.value, result.unit)


def _is_number(result: JobResult) -> bool:
    return isinstance(result, Reached)
