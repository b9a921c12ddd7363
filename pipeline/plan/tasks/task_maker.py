"""Make tasks. In: a cell of the grid with its options. Out: the task, the specs of its stages on disk.

One maker serves all jobs of a sweep: what tasks share is read, solved and hashed once.
"""

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pipeline.backends.source_digests import Sources
from pipeline.plan.identity.stage_builds import StageBuilds
from pipeline.plan.local_machine import Machine, fingerprint
from pipeline.plan.memoize import Memoized
from pipeline.plan.plan_inputs import GridCell, PlanInputs, kernel_file, overrides_of
from pipeline.plan.spec_files import SpecFiles
from pipeline.plan.tasks.recorded_tasks import Replaying
from pipeline.plan.tasks.resolution import (
    Impossible,
    Spaces,
    fitting,
    limits_of,
    problem_of,
    target_of,
)
from pipeline.plan.tasks.search_inputs import BriefSubject, brief_of, files_of, starts
from pipeline.plan.tasks.stage_specs import SpecMaker, Specs, StageChain, TaskInputs
from pipeline.records.configuration.hardware import Hardware, Quantity
from pipeline.records.configuration.kernel import Implementation, Kernel
from pipeline.records.configuration.pruning import Bounded
from pipeline.records.configuration.search_settings import Search, Start
from pipeline.records.errors import ConfigError
from pipeline.records.formula import evaluate_number
from pipeline.records.planning.planned_tasks import PlannedTask
from pipeline.records.planning.problem import Problem
from pipeline.records.planning.specs import TaskRow
from pipeline.records.record import Record, digest
from pipeline.records.search.brief import Brief
from pipeline.search.spaces.search_space import constants_of
from pipeline.search.strategy_registry import fidelities, search_inputs, strategy

T = TypeVar("T")

NO_REFERENCE = "none"
"""Digest of the reference of a kernel that has none: it is known by recorded measurements alone."""


class PlannedSpecs(Record, frozen=True, kw_only=True):
    """A task with the specs of its stages."""

    planned: PlannedTask
    specs: Specs


class TaskMaker:
    """Makes tasks; what they share is made once."""

    def __init__(self, machine: Machine, *, root: Path, store: Path) -> None:
        self._root = root
        self._files = SpecFiles(store)
        self.builds = StageBuilds(store)
        self._specs = SpecMaker(self.builds)
        self._spaces = Spaces()
        self._problem = Memoized(problem_of)
        self._fitting = Memoized(lambda *chosen: self._shared(fitting(*chosen)))
        self._target = Memoized(lambda *chosen: self._shared(target_of(*chosen)))
        self._limits = Memoized(limits_of)
        self._fingerprint = Memoized(lambda device: fingerprint(device, machine))
        self._cost = Memoized(_cost)
        self._of_source = Memoized(self._source_digests_of)
        self._of_modules = Memoized(self._modules)
        self._sources = Sources(root)
        self._replaying = Replaying(root)
        self._replayed = Memoized(self._replaying.task)
        self._equals: dict[tuple[type, bytes], Any] = {}
        self._source_digests: dict[str, str] = {}
        self._module_digests: dict[str, tuple[str, str | None]] = {}

    def task(self, material: PlanInputs, cell: GridCell) -> PlannedSpecs:
        """The task of a cell with its specs on disk; raises Impossible where there is none."""
        settings = material.settings
        kernel, device = material.kernels[cell.kernel], material.devices[cell.hardware]
        workload, optimization = material.workloads[cell.workload], material.optimizations[cell.optimization]
        where = kernel_file(self._root, cell.kernel)
        replayed = self._replayed(kernel, device.hardware, workload, optimization, where)
        if replayed is None:
            problem = self._problem(kernel, workload, where)
            implementations = self._fitting(kernel, device.hardware.kind, optimization)
        elif strategy(settings.search.strategy).write is not None:
            raise Impossible(f"{settings.search.strategy} writes sources, and nothing was recorded of those")
        else:
            problem, implementations = replayed.problem, replayed.implementations
        _check_shrink(settings.search, problem, recorded=replayed is not None)
        # All limits, so that an error names all that a constraint may use.
        constants = constants_of(problem, self._limits(device.hardware))
        ruled_by = f"kernel.space={kernel.space}" if kernel.space is not None else where
        if replayed is None:
            implementations = self._spaces.with_defaults(implementations, optimization, constants, ruled_by)
        counts = self._spaces.counts(implementations, optimization, constants, ruled_by)
        reference, vendors = self._of_modules(kernel, where)
        task = TaskInputs(
            kernel=kernel,
            implementations=implementations,
            problem=problem,
            target=self._target(device.hardware, implementations),
            device_present=device.present,
            device=replayed.file.digest if replayed else self._fingerprint(device),
            optimization=optimization,
            search=settings.search,
            verify=settings.verify,
            profile=settings.profile,
            # A kernel that is known by its measurements has no source; their file stands for it.
            source_digests=replayed.sources
            if replayed and kernel.space
            else self._of_source(implementations),
            reference_digest=reference,
            vendors_digest=vendors,
            files=self._folder(settings.search),
            brief=self._brief(material, cell, implementations, reference),
            starts=self._starts(settings.search, implementations, cell, problem.element),
            recorded=replayed.file if replayed else None,
            bounded=self._bounded(settings.search, kernel, problem, device.hardware),
        )
        budget = settings.search.variants_per_round
        total = sum(counts.values())
        chain = self._specs.of(task)
        planned = PlannedTask(
            row=self._row(cell, task, device.hardware, self._written(chain)),
            variants=counts,
            proposed=total if budget is None else min(total, budget),
        )
        return PlannedSpecs(planned=planned, specs=chain.specs)

    def _starts(
        self, search: Search, implementations: dict[str, Implementation], cell: GridCell, dtype: str
    ) -> tuple[Start, ...]:
        """Winners that the search begins with; the files belong to what the plan was made from."""
        winners = search_inputs(search).winners
        if winners is None:
            return ()
        wanted = {
            "kernel": cell.kernel,
            "workload": cell.workload,
            "hardware": cell.hardware,
            "dtype": dtype,
        }
        setting = f"search.{search.strategy}.winners"
        found, files = starts(winners, implementations, wanted, self._root, setting=setting)
        self._sources.read.update(files)
        return found

    def files(self) -> tuple[str, ...]:
        """Sources that were read."""
        return tuple(sorted(str(path) for path in self._sources.read | self._replaying.read))

    def _shared(self, value: T) -> T:
        """The first equal one: a kernel of which an attribute was set has the same implementations."""
        # Not in canonical form: two orders of the same names are two values.
        shared: T = self._equals.setdefault((type(value), msgspec.json.encode(value)), value)
        return shared

    def _written(self, chain: StageChain) -> dict[str, str]:
        for stage, file in chain.files.items():
            self._files.put(stage, file)
        return {stage: file.key for stage, file in chain.files.items()}

    def _source_digests_of(self, implementations: dict[str, Implementation]) -> dict[str, str]:
        return {name: self._source_digest(each) for name, each in implementations.items()}

    def _source_digest(self, implementation: Implementation) -> str:
        key = digest(implementation)
        if key not in self._source_digests:
            self._source_digests[key] = self._sources.implementation(implementation)
        return self._source_digests[key]

    def _brief(
        self, material: PlanInputs, cell: GridCell, implementations: dict[str, Implementation], reference: str
    ) -> Brief | None:
        """For searches that ask for one, or read diagnoses."""
        search, kernel = material.settings.search, material.kernels[cell.kernel]
        request = search_inputs(search).brief
        known = kernel.cost.flops is not None and kernel.cost.bytes is not None
        if request is None and (strategy(search.strategy).diagnose is None or not known):
            return None
        subject = BriefSubject(
            search=search.strategy,
            request=request,
            kernel=kernel,
            implementations=implementations,
            hardware=material.devices[cell.hardware].hardware,
            reference_digest=reference,
            kernels=material.every_kernel,
        )
        brief = brief_of(subject, self._root, self._sources.implementation)
        if request is not None and request.start is not None:
            self._sources.read.add((self._root / request.start).resolve())
        return brief

    def _folder(self, search: Search) -> dict[str, str]:
        """Files of the folder that a search names; the plan is made again if one is added or changes."""
        given = search_inputs(search).folder
        if given is None:
            return {}
        found = files_of(given, self._root, setting=f"search.{search.strategy}.folder")
        folder = (self._root / given).resolve()
        self._sources.read |= {folder, *(folder / name for name in found)}
        return found

    def _modules(self, kernel: Kernel, where: str) -> tuple[str, str | None]:
        """Digests of the reference's modules and of the vendors'."""
        if not kernel.reference:
            return NO_REFERENCE, None
        key = digest([where, kernel.reference, kernel.tolerance.magnitude, kernel.vendors])
        if key not in self._module_digests:
            self._module_digests[key] = (
                self._sources.reference(kernel, where),
                self._sources.vendors(kernel, where),
            )
        return self._module_digests[key]

    def _bounded(
        self, search: Search, kernel: Kernel, problem: Problem, hardware: Hardware
    ) -> Bounded | None:
        """What bounds rest on, where the search prunes by them: other searches do not depend on it."""
        if search.prune is None or not search.prune.by_bound:
            return None
        cost = self._cost(kernel, problem)
        return Bounded(
            flops=cost.flops,
            bytes=cost.bytes,
            read=cost.read,
            unit=kernel.cost.unit,
            dtype=problem.element,
            peaks=peaks_of(kernel, problem, hardware),
        )

    def _row(self, cell: GridCell, task: TaskInputs, hardware: Hardware, keys: dict[str, str]) -> TaskRow:
        cost = self._cost(task.kernel, task.problem)
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
            flops=cost.flops,
            bytes=cost.bytes,
            read=cost.read,
            unit=task.kernel.cost.unit,
            peaks=peaks_of(task.kernel, task.problem, hardware),
            limits=self._limits(hardware),
            generate=keys["generate"],
            compile=keys["compile"],
            verify=keys["verify"],
            profile=keys["profile"],
            recorded=task.recorded.line if task.recorded else None,
            preset=None if task.recorded else task.verify.name,
            editing_only=task.recorded is None and task.verify.editing_only,
            varied=overrides_of(cell.workload),
        )


def _check_shrink(search: Search, problem: Problem, *, recorded: bool) -> None:
    """Raise if the search measures on smaller shapes and there are none."""
    names = dict.fromkeys(name for each in fidelities(search) for name in each.shrink)
    if not names:
        return
    where = f"search.{search.strategy}.shrink"
    if recorded:
        raise Impossible(f"{where}: the measurements were recorded on one shape")
    if not names.keys() & problem.dimensions.keys():
        raise ConfigError(
            f"{where}: got {', '.join(names)}, "
            f"expected dimensions of {problem.kernel}: {', '.join(problem.dimensions)}"
        )


def peaks_of(kernel: Kernel, problem: Problem, hardware: Hardware) -> dict[str, Quantity]:
    """Those of the target; of products in another type than the workload's, its peak stands for that one.

    Targets declare products of 8 bits as `matrix_fp8`: their units multiply int8 as fast.
    """
    found = hardware.peaks.get("matrix_fp8") if kernel.cost.products is not None else None
    return hardware.peaks if found is None else {**hardware.peaks, f"matrix_{problem.element}": found}


class _Cost(Record, frozen=True, kw_only=True):
    """Of one call."""

    flops: float | None
    """Each is absent where the kernel has no formula."""
    bytes: float | None
    read: float | None
    """Bytes that the inputs take of these."""


def _cost(kernel: Kernel, problem: Problem) -> _Cost:
    names = {**problem.attributes, **problem.dimensions}
    names["itemsize"] = constants_of(problem, {})["itemsize"]
    flops, traffic = (
        None if formula is None else evaluate_number(formula, names)
        for formula in (kernel.cost.flops, kernel.cost.bytes)
    )
    read = None if traffic is None else traffic * problem.input_share
    return _Cost(flops=flops, bytes=traffic, read=read)
