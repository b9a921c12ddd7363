"""Labels of tasks and descriptions of plans: what was planned in, texts out.

Tables, winners and MLflow identify a task by its kernel, workload, hardware and dtype. If the jobs of a sweep
set values in them (`workload.dimensions.tokens=range(1,9)`) or judge and measure them differently
(`profile=standard,server`), these names are ambiguous: what the jobs differ in is then appended to the name
of the workload, as in `llama3_8b_decode[tokens=4]`. Tasks that differ only in optimization and search keep
their names, because they compete.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from pipeline.plan.config.groups import AXES
from pipeline.plan.config.overrides import read_override
from pipeline.plan.grid_cells import GridCell, cells
from pipeline.plan.plan_inputs import PlanInputs
from pipeline.records.configuration.experiment import Experiment
from pipeline.records.configuration.hardware import Hardware
from pipeline.records.configuration.stage_settings import Profile, Verify
from pipeline.records.planning.planned_tasks import PlannedTask
from pipeline.records.planning.problem import Problem
from pipeline.records.record import Record, digest

COMPETING = ("optimization", "search")
UNSEEN = ("tracking", "objective", "mutation")
"""Groups that change nothing of a task's result."""


class Planned(Record, frozen=True, kw_only=True):
    """A task with what its names must tell."""

    task: PlannedTask
    problem: Problem
    hardware: Hardware
    verify: Verify
    profile: Profile
    lines: tuple[str, ...]
    """Overrides of the first job that has it."""

    @property
    def subject(self) -> str:
        """Identity of what is computed, where, and how it is judged and measured."""
        return digest([self.problem, self.hardware, self.verify, self.profile])


def tell_apart(tasks: Sequence[Planned]) -> tuple[PlannedTask, ...]:
    """The tasks in their order; names that would stand for several subjects say which one they mean."""
    cells: dict[tuple[str, ...], list[Planned]] = {}
    for each in tasks:
        row = each.task.row
        cells.setdefault((row.kernel, row.workload, row.hardware, row.dtype), []).append(each)
    labelled: dict[str, PlannedTask] = {}
    for several in cells.values():
        if len(several) > 1 and len({each.subject for each in several}) > 1:
            labelled |= _labelled(several)
    return tuple(labelled.get(each.task.row.task, each.task) for each in tasks)


def _labelled(several: list[Planned]) -> dict[str, PlannedTask]:
    told = {each.task.row.task: [line for line in each.lines if _tells(line)] for each in several}
    common = set.intersection(*(set(lines) for lines in told.values()))
    varied = {task: tuple(line for line in lines if line not in common) for task, lines in told.items()}
    labels = {task: " ".join(map(_short, lines)) for task, lines in varied.items()}
    if len(set(labels.values())) < len(set(varied.values())):
        labels = {task: " ".join(lines) for task, lines in varied.items()}
    return {
        each.task.row.task: _renamed(each.task, labels[each.task.row.task], varied[each.task.row.task])
        for each in several
    }


def _renamed(task: PlannedTask, label: str, varied: tuple[str, ...]) -> PlannedTask:
    if not label:
        return task
    safe = re.sub(r"[^\w.=,+\- ]", "_", label)  # of use in queries, paths and addresses
    row = msgspec.structs.replace(task.row, workload=f"{task.row.workload}[{safe}]", varied=varied)
    return msgspec.structs.replace(task, row=row)


def _tells(line: str) -> bool:
    group, dot, _ = read_override(line).key_or_group.partition(".")
    return group not in (*COMPETING, *UNSEEN) and bool(dot or group not in AXES)


def _short(line: str) -> str:
    """Without the way to the key: `tokens=4`."""
    override = read_override(line)
    return f"{override.key_or_group.rpartition('.')[2]}={override.get_value_element_as_str()}"


def described(materials: Sequence[PlanInputs]) -> str:
    """A sentence or two for each experiment; equal cells have the same text, however they were asked for."""
    experiments: dict[str, Experiment] = {}
    chosen: dict[str, list[GridCell]] = {}
    for material in materials:
        experiment = material.settings.experiment
        experiments[experiment.name] = experiment
        chosen.setdefault(experiment.name, []).extend(cell for job in material.jobs for cell in job.cells)
    return " ".join(_described(experiment, chosen[name]) for name, experiment in experiments.items())


def _described(experiment: Experiment, chosen: Iterable[GridCell]) -> str:
    own, found = cells(experiment, {}), set(chosen)
    if found == set(own):
        return experiment.description
    if not found <= set(own):
        named = _names(sorted(found, key=_words), AXES)
        return f"Chosen in place of what the experiment {experiment.name} selects: {named}."
    kept = [cell for cell in own if cell in found]
    narrowed = [axis for axis in AXES if set(_values(kept, axis)) != set(_values(own, axis))]
    what = _names(kept, narrowed) if narrowed else f"{len(kept)} of its {len(own)} cells"
    return f"{experiment.description} Here only {what}."


def _names(found: Sequence[GridCell], axes: Iterable[str]) -> str:
    """As overrides: `kernel=softmax,matmul hardware=cpu`."""
    return " ".join(f"{axis}={','.join(_values(found, axis))}" for axis in axes)


def _values(found: Iterable[GridCell], axis: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(getattr(cell, axis) for cell in found))


def _words(cell: GridCell) -> tuple[str, ...]:
    return tuple(getattr(cell, axis) for axis in AXES)
