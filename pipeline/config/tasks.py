"""Make tasks. In: a cell of the grid with its options. Out: the task, the specs of its stages on disk.

One maker serves all jobs of a sweep: what tasks share is read, solved and hashed once.
"""

from collections.abc import Mapping
from pathlib import Path

from pipeline.config.briefs import Subject, brief_of
from pipeline.config.builds import Builds
from pipeline.config.folders import files_of
from pipeline.config.machine import Machine, fingerprint
from pipeline.config.material import Material, kernel_file
from pipeline.config.replaying import Replayed, Replaying
from pipeline.config.resolve import (
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
from pipeline.config.transfer import starts
from pipeline.records.brief import Brief
from pipeline.records.kernel import Implementation, Kernel, TunableValue
from pipeline.records.plan import PlannedTask
from pipeline.records.record import Record, digest
from pipeline.records.search import Search, Start
from pipeline.records.specs import TaskRow
from pipeline.search.formula import evaluate_number
from pipeline.search.space import constants_of


NO_REFERENCE = "none"
"""Digest of the reference of a kernel that has none."""


class Made(Record, frozen=True, kw_only=True):
    """A task with the specs of its stages."""

    planned: PlannedTask
    specs: Specs


class TaskMaker:
    """Makes tasks; what they share is made once."""

    def __init__(self, machine: Machine, *, root: Path, store: Path) -> None:
        self._machine = machine
        self._root = root
        self._store = store
        self.builds = Builds(store)
        self._spaces = Spaces()
        self._sources = Sources(root)
        self._replaying = Replaying(root)
        self._source_digests: dict[str, str] = {}
        self._module_digests: dict[str, tuple[str, str | None]] = {}

    def task(self, material: Material, cell: Cell) -> Made:
        """The task of a cell with its specs on disk; raises Impossible where there is none."""
        settings = material.settings
        kernel, device = material.kernels[cell.kernel], material.devices[cell.hardware]
        workload, optimization = material.workloads[cell.workload], material.optimizations[cell.optimization]
        where = kernel_file(self._root, cell.kernel)
        replayed = self._replaying.task(kernel, device.hardware, workload, optimization, where)
        if replayed is None:
            problem = problem_of(kernel, workload, where)
            implementations = fitting(kernel, device.hardware.kind, optimization)
        else:
            problem, implementations = replayed.problem, replayed.implementations
        # All limits, so that an error names all that a constraint may use.
        constants = constants_of(problem, limits_of(device.hardware))
        counts = self._spaces.counts(implementations, optimization, constants, where)
        reference, vendors = self._modules(kernel, where) if kernel.reference else (NO_REFERENCE, None)
        task = Task(
            kernel=kernel,
            implementations=implementations,
            problem=problem,
            target=target_of(device.hardware, implementations),
            device_present=device.present,
            device=replayed.file.digest if replayed else fingerprint(device, self._machine),
            optimization=optimization,
            search=settings.search,
            verify=settings.verify,
            profile=settings.profile,
            source_digests={name: self._source_digest(kernel, name, replayed) for name in implementations},
            reference_digest=reference,
            vendors_digest=vendors,
            files=self._folder(settings.search),
            brief=self._brief(material, cell, implementations, reference),
            starts=self._starts(settings.search, implementations, cell, problem.element),
            recorded=replayed.file if replayed else None,
        )
        budget = settings.search.variants_per_round
        total = sum(counts.values())
        specs = specs_of(task, self.builds)
        planned = PlannedTask(
            row=_row(cell, task, material, self._written(specs)),
            variants=counts,
            proposed=total if budget is None else min(total, budget),
        )
        return Made(planned=planned, specs=specs)

    def _starts(
        self, search: Search, implementations: dict[str, Implementation], cell: Cell, dtype: str
    ) -> tuple[Start, ...]:
        """Winners that the search begins with; the files belong to what the plan was made from."""
        if search.strategy != "transfer" or search.transfer is None:
            return ()
        wanted = {
            "kernel": cell.kernel,
            "workload": cell.workload,
            "hardware": cell.hardware,
            "dtype": dtype,
        }
        found, files = starts(search.transfer, implementations, wanted, self._root)
        self._sources.read.update(files)
        return found

    def files(self) -> tuple[str, ...]:
        """Sources that were read."""
        return tuple(sorted(str(path) for path in self._sources.read | self._replaying.read))

    def _written(self, specs: Specs) -> dict[str, str]:
        keys = specs.keys()
        for stage, key in keys.items():
            write_spec(self._store, stage, key, getattr(specs, stage))
        return keys

    def _source_digest(self, kernel: Kernel, name: str, replayed: Replayed | None) -> str:
        if replayed is not None and name not in kernel.implementations:
            return replayed.file.digest  # there is no source; what stands for it is the file
        implementation = kernel.implementations[name]
        key = digest(implementation)
        if key not in self._source_digests:
            self._source_digests[key] = self._sources.implementation(implementation)
        return self._source_digests[key]

    def _brief(
        self, material: Material, cell: Cell, implementations: dict[str, Implementation], reference: str
    ) -> Brief | None:
        """Where a language model is to write."""
        agent = material.settings.search.agent
        if agent is None:
            return None
        subject = Subject(
            agent=agent,
            kernel=material.kernels[cell.kernel],
            implementations=implementations,
            hardware=material.devices[cell.hardware].hardware,
            reference_digest=reference,
            kernels=material.every_kernel,
        )
        brief = brief_of(subject, self._root, self._sources.implementation)
        if agent.start is not None:
            self._sources.read.add((self._root / agent.start).resolve())
        return brief

    def _folder(self, search: Search) -> dict[str, str]:
        """Files of the folder that a search names; the plan is made anew when one comes or changes."""
        if search.folder is None:
            return {}
        found = files_of(search.folder, self._root)
        folder = (self._root / search.folder).resolve()
        self._sources.read |= {folder, *(folder / name for name in found)}
        return found

    def _modules(self, kernel: Kernel, where: str) -> tuple[str, str | None]:
        """Digests of the reference's modules and of the vendors'."""
        key = digest([where, kernel.reference, kernel.tolerance.magnitude, kernel.vendors])
        if key not in self._module_digests:
            self._module_digests[key] = (
                self._sources.reference(kernel, where),
                self._sources.vendors(kernel, where),
            )
        return self._module_digests[key]


def _row(cell: Cell, task: Task, material: Material, keys: dict[str, str]) -> TaskRow:
    hardware = material.devices[cell.hardware].hardware
    names = {**task.problem.attributes, **task.problem.dimensions}
    names["itemsize"] = constants_of(task.problem, {})["itemsize"]
    cost = task.kernel.cost
    traffic = _evaluated(cost.bytes, names)
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
        flops=_evaluated(cost.flops, names),
        bytes=traffic,
        read=None if traffic is None else traffic * task.problem.input_share,
        unit=cost.unit,
        peaks=hardware.peaks,
        limits=limits_of(hardware),
        generate=keys["generate"],
        compile=keys["compile"],
        verify=keys["verify"],
        profile=keys["profile"],
        recorded=task.recorded.line if task.recorded else None,
    )


def _evaluated(formula: str | None, names: Mapping[str, TunableValue]) -> float | None:
    return None if formula is None else evaluate_number(formula, names)
