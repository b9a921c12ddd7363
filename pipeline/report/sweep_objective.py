"""The objective of a job. In: its tasks and what their stages wrote. Out: a number, or why there is none.

The number is that of the best verified variant of each cell (kernel, workload, hardware, dtype); of several
cells the geometric mean. A cell without a measurement leaves the job without a number: a mean over fewer
cells would compare with nothing.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pipeline.records.layout import STAGES, output_path
from pipeline.records.planning.objective import JobResult, Missed, Objective, Reached, Unfinished
from pipeline.records.planning.specs import AggregateSpec, TaskRow
from pipeline.records.results.aggregated import Cell, NotMeasured
from pipeline.records.results.collection import Result, collect
from pipeline.records.results.profiled import Profiled
from pipeline.report.winner_selection import by_cell, find_winners


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
                    return Unfinished(reason=f"{_of_task(task)}: {stage} did not come to its end{seen}")
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
