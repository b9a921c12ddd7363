"""Make the plan: overrides and conf/ in; tasks, and under artifacts/plan/ the specs of their stages, out.

The jobs of a sweep are planned together: each distinct task once, one aggregate over all of them.
"""

import functools
from collections.abc import Sequence
from pathlib import Path

from pipeline.plan.config.compose import Compositions
from pipeline.plan.grid_cells import GridCell
from pipeline.plan.identity.tool_versions import Toolchain
from pipeline.plan.labels import Planned, described, tell_apart
from pipeline.plan.local_machine import Machine
from pipeline.plan.memoize import Memoized
from pipeline.plan.plan_inputs import JobCells, Lines, PlanInputs, gather_inputs
from pipeline.plan.spec_files import write_spec
from pipeline.plan.tasks.resolution import Impossible
from pipeline.plan.tasks.stage_specs import Specs, explanations, mutate_specs
from pipeline.plan.tasks.task_maker import TaskMaker
from pipeline.records.configuration.stage_settings import Tracking
from pipeline.records.errors import ConfigError
from pipeline.records.planning.planned_tasks import Plan, PlannedJob, PlannedMutation, PlannedTask, PrunedCell
from pipeline.records.planning.specs import AggregateSpec, MutationRow, key_of
from pipeline.records.record import Record, digest


class PlanResult(Record, frozen=True, kw_only=True):
    """A plan, and what it was made from beside conf/ and the code."""

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
    plan = Plan(
        experiment=_named(materials),
        tasks=tasks,
        pruned=pruned,
        mutations=mutations,
        aggregate=planner.aggregate(materials, tasks, pruned),
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
