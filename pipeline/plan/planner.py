"""Make the plan: overrides and conf/ in; tasks, and under artifacts/plan/ the specs of their stages, out.

The jobs of a sweep are planned together: each distinct task once, one aggregate over all of them.
"""

import functools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from pipeline.plan.config.compose import Compositions
from pipeline.plan.config.groups import AXES
from pipeline.plan.config.overrides import read_override
from pipeline.plan.identity.tool_versions import Toolchain
from pipeline.plan.local_machine import Machine
from pipeline.plan.memoize import Memoized
from pipeline.plan.plan_inputs import GridCell, JobCells, Lines, PlanInputs, cells, gather_inputs
from pipeline.plan.spec_files import write_spec
from pipeline.plan.tasks.resolution import Impossible
from pipeline.plan.tasks.stage_specs import Specs, explanations, mutate_specs
from pipeline.plan.tasks.task_maker import TaskMaker
from pipeline.records.configuration.experiment import Experiment
from pipeline.records.configuration.hardware import Hardware
from pipeline.records.configuration.stage_settings import Profile, Tracking, Verify
from pipeline.records.errors import ConfigError
from pipeline.records.layout import asked_path, spec_path
from pipeline.records.planning.planned_tasks import Plan, PlannedJob, PlannedMutation, PlannedTask, PrunedCell
from pipeline.records.planning.problem import Problem
from pipeline.records.planning.specs import AggregateSpec, MutationRow, key_of
from pipeline.records.record import Record, digest, to_json
from pipeline.store.atomic import write_atomic

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
    chosen = {each.task.row.task: [line for line in each.lines if _is_label(line)] for each in several}
    common = set.intersection(*(set(lines) for lines in chosen.values()))
    varied = {task: tuple(line for line in lines if line not in common) for task, lines in chosen.items()}
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
    row = msgspec.structs.replace(
        task.row, workload=f"{task.row.workload}[{safe}]", varied=(*task.row.varied, *varied)
    )
    return msgspec.structs.replace(task, row=row)


def _is_label(line: str) -> bool:
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


class PlanResult(Record, frozen=True, kw_only=True):
    """A plan, and what it was made from in addition to conf/ and the code."""

    plan: Plan
    files: tuple[str, ...]
    """Sources that were read."""
    toolchains: tuple[Toolchain, ...]


def make_plan(
    jobs: Sequence[Lines], *, root: Path, store: Path, machine: Machine, known: Compositions | None = None
) -> PlanResult:
    """The plan for the overrides of these jobs; `root` is the repository, `store` the artifact folder.

    What is composed stands in `known` afterwards.

    Raises
    ------
    ConfigError
        A yaml or an override is wrong, or no cell of the grid is possible.
    """
    materials = gather_inputs(jobs, root, machine, known)
    planner = _Planner(TaskMaker(machine, root=root, store=store), root=root, store=store)
    for number, material in _in_order(materials):
        planner.add(material, number, jobs[number.number])
    tasks, pruned = planner.tasks(), planner.pruned()
    if not tasks:
        more = f" (and {len(pruned) - 1} more)" if len(pruned) > 1 else ""
        raise ConfigError(f"nothing to do: no cell of the grid is possible: {pruned[0]}{more}")
    mutations = planner.mutations(materials)
    aggregate = planner.aggregate(materials, tasks, pruned)
    # Apart from the spec, whose key is the same however its tasks are asked for.
    write_atomic(asked_path(spec_path(store, "aggregate", aggregate)), to_json(jobs))
    plan = Plan(
        experiment=_named(materials),
        tasks=tasks,
        pruned=pruned,
        mutations=mutations,
        aggregate=aggregate,
        jobs=planner.jobs(),
    )
    return PlanResult(plan=plan, files=planner.maker.files(), toolchains=planner.maker.builds.toolchains)


def _in_order(materials: Sequence[PlanInputs]) -> list[tuple[JobCells, PlanInputs]]:
    """The jobs as they were given: one run over lists of options has its tasks in the same order."""
    pairs = [(job, material) for material in materials for job in material.jobs]
    return sorted(pairs, key=lambda pair: pair[0].number)


class _Planner:
    """Collects what jobs consist of; a task that several have is made once."""

    def __init__(self, maker: TaskMaker, *, root: Path, store: Path) -> None:
        self.maker = maker
        self._root = root
        self._store = store
        self._cells: dict[tuple[int, GridCell], str | PrunedCell] = {}
        """Material and cell -> the task's identity, or why there is none."""
        self._planned: dict[str, Planned] = {}
        self._specs: dict[str, dict[str, Specs]] = {}
        """How mutants are judged -> task -> its specs."""
        self._judged = Memoized(lambda *records: digest(records))
        self._pruned: dict[str, PrunedCell] = {}
        self._jobs: list[PlannedJob] = []
        self._explained: list[MutationRow] = []

    def add(self, material: PlanInputs, job: JobCells, lines: Lines) -> None:
        """Make the tasks of a job."""
        found = [self._cell(material, cell, lines) for cell in job.cells]
        self._jobs.append(
            PlannedJob(
                overrides=lines,
                tasks=tuple(dict.fromkeys(each for each in found if isinstance(each, str))),
                pruned=tuple(str(each) for each in found if isinstance(each, PrunedCell)),
                objective=material.settings.objective,
            )
        )

    def _cell(self, material: PlanInputs, cell: GridCell, lines: Lines) -> str | PrunedCell:
        key = (id(material), cell)
        if key not in self._cells:
            self._cells[key] = self._made(material, cell, lines)
        return self._cells[key]

    def _made(self, material: PlanInputs, cell: GridCell, lines: Lines) -> str | PrunedCell:
        try:
            made = self.maker.task(material, cell)
        except Impossible as reason:
            names = {name: getattr(cell, name) for name in cell.__struct_fields__}
            left_out = PrunedCell(**names, reason=str(reason))
            self._pruned.setdefault(str(left_out), left_out)
            return left_out
        identity = made.planned.row.task
        if identity not in self._planned:
            self._planned[identity] = Planned(
                task=made.planned,
                problem=made.specs.profile.problem,
                hardware=material.devices[cell.hardware].hardware,
                verify=made.specs.verify.settings,
                profile=made.specs.profile.settings,
                lines=lines,
            )
        self._specs.setdefault(self._judging(material), {})[identity] = made.specs
        return identity

    def _judging(self, material: PlanInputs) -> str:
        settings = material.settings
        return self._judged(settings.mutation, settings.verify, *material.presets.values())

    def tasks(self) -> tuple[PlannedTask, ...]:
        """All of them, in the order of the jobs, under names that tell them apart."""
        return tell_apart(list(self._planned.values()))

    def pruned(self) -> tuple[PrunedCell, ...]:
        """Cells that are no task of any job."""
        return tuple(self._pruned.values())

    def jobs(self) -> tuple[PlannedJob, ...]:
        """In the order given."""
        return tuple(self._jobs)

    def mutations(self, materials: Sequence[PlanInputs]) -> tuple[PlannedMutation, ...]:
        """Write the specs of mutate, over all tasks so far."""
        planned: dict[str, PlannedMutation] = {}
        explained = functools.cache(lambda source: explanations(source, self._root))
        for judging, material in {self._judging(each): each for each in materials}.items():
            settings = material.settings
            tasks = self._specs.get(judging, {}).values()
            for spec in mutate_specs(tasks, settings, material.presets, self.maker.builds):
                key = key_of(f"{spec.kernel}-{spec.implementation}", spec)
                if key in planned:
                    continue
                write_spec(self._store, "mutate", key, spec)
                names = {"key": key, "kernel": spec.kernel, "implementation": spec.implementation}
                planned[key] = PlannedMutation(**names, reported=settings.mutation.report)
                reasons = explained(Path(spec.declared.source).parent)
                if settings.mutation.report:
                    self._explained.append(MutationRow(**names, explained=reasons))
        return tuple(planned.values())

    def aggregate(
        self, materials: Sequence[PlanInputs], tasks: Sequence[PlannedTask], pruned: Sequence[PrunedCell]
    ) -> str:
        """Write the spec of aggregate, report and track; its key."""
        spec = AggregateSpec(
            experiment=_named(materials),
            description=described(materials),
            tasks=tuple(task.row for task in tasks),
            pruned=tuple(str(cell) for cell in pruned),
            mutations=tuple(self._explained),
            tracking=_tracking(materials),
            build=self.maker.builds.aggregate(),
        )
        key = key_of(spec.experiment, spec)
        write_spec(self._store, "aggregate", key, spec)
        return key


def _named(materials: Sequence[PlanInputs]) -> str:
    """The experiment; `a+b` where jobs have several."""
    return "+".join(dict.fromkeys(material.settings.experiment.name for material in materials))


def _tracking(materials: Sequence[PlanInputs]) -> Tracking:
    """How the sweep is logged: its jobs are logged together."""
    found = {digest(each.settings.tracking): each.settings.tracking for each in materials}
    if len(found) > 1:
        names = ", ".join(dict.fromkeys(tracking.name for tracking in found.values()))
        raise ConfigError(f"tracking: the jobs of a sweep are logged together, expected one, got {names}")
    return next(iter(found.values()))
