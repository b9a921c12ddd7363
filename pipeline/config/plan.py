"""Make the plan: overrides and conf/ in; tasks, and under artifacts/plan/ the specs of their stages, out."""

import functools
from pathlib import Path

from pipeline.config.builds import Builds
from pipeline.config.machine import Machine, fingerprint
from pipeline.config.material import Material, gather, kernel_file
from pipeline.config.mutations import explanations, mutate_specs
from pipeline.config.resolve import (
    Impossible,
    Spaces,
    fitting,
    limits_of,
    problem_of,
    target_of,
)
from pipeline.config.select import Cell
from pipeline.config.sources import Sources
from pipeline.config.spec_files import write_spec
from pipeline.config.specs import Specs, Task, specs_of
from pipeline.config.toolchain import Toolchain
from pipeline.errors import ConfigError
from pipeline.records.plan import Plan, PlannedMutation, PlannedTask, PrunedCell
from pipeline.records.problem import Problem
from pipeline.records.record import Record, digest
from pipeline.records.specs import AggregateSpec, MutationRow, TaskRow, key_of
from pipeline.search.formula import evaluate_number
from pipeline.search.space import constants_of


class Made(Record, frozen=True, kw_only=True):
    """A plan, and what it was made from beside conf/ and the code."""

    plan: Plan
    files: tuple[str, ...]
    """Sources that were read."""
    toolchains: tuple[Toolchain, ...]


def make_plan(lines: tuple[str, ...], *, root: Path, store: Path, machine: Machine) -> Made:
    """The plan for these overrides; `root` is the repository, `store` the artifact folder.

    Raises
    ------
    ConfigError
        A yaml or an override is wrong, or no cell of the grid is possible.
    """
    material = gather(lines, root, machine)
    planner = _Planner(material, machine, root=root, store=store)
    tasks: list[PlannedTask] = []
    pruned: list[PrunedCell] = []
    for cell in material.cells:
        try:
            tasks.append(planner.task(cell))
        except Impossible as reason:
            names = {name: getattr(cell, name) for name in cell.__struct_fields__}
            pruned.append(PrunedCell(**names, reason=str(reason)))
    if not tasks:
        more = f" (and {len(pruned) - 1} more)" if len(pruned) > 1 else ""
        raise ConfigError(f"nothing to do: no cell of the grid is possible: {pruned[0]}{more}")
    plan = Plan(
        experiment=material.settings.experiment.name,
        tasks=tuple(tasks),
        pruned=tuple(pruned),
        mutations=planner.mutations(),
        aggregate=planner.aggregate(tasks, pruned),
    )
    return Made(plan=plan, files=planner.files(), toolchains=planner.builds.toolchains)


class _Planner:
    """Makes tasks; what cells share is made once."""

    def __init__(self, material: Material, machine: Machine, *, root: Path, store: Path) -> None:
        self._material = material
        self._machine = machine
        self._root = root
        self._store = store
        self.builds = Builds(store)
        self._spaces = Spaces()
        self._sources = Sources(root)
        self._specs: list[Specs] = []
        self._mutations: list[MutationRow] = []
        self._problem = functools.cache(self._make_problem)
        self._source_digest = functools.cache(self._make_source_digest)
        self._reference_digest = functools.cache(self._make_reference_digest)
        self._vendors_digest = functools.cache(self._make_vendors_digest)

    def task(self, cell: Cell) -> PlannedTask:
        """The task of a cell with its specs on disk; raises Impossible where there is none."""
        material, settings = self._material, self._material.settings
        kernel, device = material.kernels[cell.kernel], material.devices[cell.hardware]
        optimization = material.optimizations[cell.optimization]
        problem = self._problem(cell.kernel, cell.workload)
        implementations = fitting(kernel, device.hardware.kind, optimization)
        target = target_of(device.hardware, implementations)
        # All limits, so that an error names all that a constraint may use.
        constants = constants_of(problem, limits_of(device.hardware))
        counts = self._spaces.counts(implementations, optimization, constants, self._file(cell))
        task = Task(
            kernel=kernel,
            implementations=implementations,
            problem=problem,
            target=target,
            device_present=device.present,
            device=fingerprint(device, self._machine),
            optimization=optimization,
            search=settings.search,
            verify=settings.verify,
            profile=settings.profile,
            source_digests={name: self._source_digest(cell.kernel, name) for name in implementations},
            reference_digest=self._reference_digest(cell.kernel),
            vendors_digest=self._vendors_digest(cell.kernel),
        )
        budget = settings.search.variants_per_round
        total = sum(counts.values())
        return PlannedTask(
            row=self._row(cell, task, self._written(task)),
            variants=counts,
            proposed=total if budget is None else min(total, budget),
        )

    def mutations(self) -> tuple[PlannedMutation, ...]:
        """Write the specs of mutate, over all tasks so far."""
        planned = []
        for spec in mutate_specs(self._specs, self._material, self.builds):
            key = key_of(f"{spec.kernel}-{spec.implementation}", spec)
            write_spec(self._store, "mutate", key, spec)
            names = {"key": key, "kernel": spec.kernel, "implementation": spec.implementation}
            planned.append(PlannedMutation(**names, reported=self._material.settings.mutation.report))
            self._mutations.append(MutationRow(**names, explained=explanations(spec.declared, self._root)))
        return tuple(planned)

    def aggregate(self, tasks: list[PlannedTask], pruned: list[PrunedCell]) -> str:
        """Write the spec of aggregate, report and track; its key."""
        settings = self._material.settings
        spec = AggregateSpec(
            experiment=settings.experiment.name,
            description=settings.experiment.description,
            tasks=tuple(task.row for task in tasks),
            pruned=tuple(str(cell) for cell in pruned),
            mutations=tuple(self._mutations) if settings.mutation.report else (),
            tracking=settings.tracking,
            build=self.builds.aggregate(),
        )
        key = key_of(settings.experiment.name, spec)
        write_spec(self._store, "aggregate", key, spec)
        return key

    def files(self) -> tuple[str, ...]:
        """Sources that were read."""
        return tuple(sorted(str(path) for path in self._sources.read))

    def _written(self, task: Task) -> dict[str, str]:
        specs = specs_of(task, self.builds)
        self._specs.append(specs)
        keys = specs.keys()
        for stage, key in keys.items():
            write_spec(self._store, stage, key, getattr(specs, stage))
        return keys

    def _row(self, cell: Cell, task: Task, keys: dict[str, str]) -> TaskRow:
        hardware = self._material.devices[cell.hardware].hardware
        names = {**task.problem.attributes, **task.problem.dimensions}
        names["itemsize"] = constants_of(task.problem, {})["itemsize"]
        cost = task.kernel.cost
        traffic = evaluate_number(cost.bytes, names)
        return TaskRow(
            task=digest([cell, task.search.name, keys["profile"]]),
            kernel=cell.kernel,
            workload=cell.workload,
            hardware=cell.hardware,
            kind=hardware.kind,
            device_present=task.device_present,
            optimization=cell.optimization,
            search=task.search.name,
            rounds=task.search.rounds,
            dtype=task.problem.element,
            dimensions=task.problem.dimensions,
            flops=evaluate_number(cost.flops, names),
            bytes=traffic,
            read=traffic * task.problem.input_share,
            unit=cost.unit,
            peaks=hardware.peaks,
            limits=limits_of(hardware),
            **keys,
        )

    def _make_problem(self, kernel: str, workload: str) -> Problem:
        material = self._material
        where = kernel_file(self._root, kernel)
        return problem_of(material.kernels[kernel], material.workloads[workload], where)

    def _make_source_digest(self, kernel: str, implementation: str) -> str:
        return self._sources.implementation(self._material.kernels[kernel].implementations[implementation])

    def _make_reference_digest(self, kernel: str) -> str:
        return self._sources.reference(self._material.kernels[kernel], kernel_file(self._root, kernel))

    def _make_vendors_digest(self, kernel: str) -> str | None:
        return self._sources.vendors(self._material.kernels[kernel], kernel_file(self._root, kernel))

    def _file(self, cell: Cell) -> str:
        return kernel_file(self._root, cell.kernel)
