"""Names for tasks that a sweep over values makes of one cell: tasks and overrides in, tasks with names out.

Tables, winners and MLflow know a task by its kernel, workload, hardware and dtype. Where the jobs of a sweep
set values in them (`workload.dimensions.tokens=range(1,9)`) or judge and measure them differently
(`profile=standard,server`), these names are no longer enough: what the jobs differ in then stands behind the
workload's name, as in `llama3_8b_decode[tokens=4]`. Tasks that differ only in optimization and search keep
their names, and compete.
"""

import re
from collections.abc import Sequence

import msgspec

from pipeline.plan.config.grammar import read_override
from pipeline.plan.config.groups import AXES
from pipeline.records.hardware import Hardware
from pipeline.records.plan import PlannedTask
from pipeline.records.problem import Problem
from pipeline.records.record import Record, digest
from pipeline.records.settings import Profile, Verify

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
