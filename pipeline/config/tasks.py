"""Make tasks. In: a cell of the grid with its options. Out: the task, the specs of its stages on disk.

One maker serves all jobs of a sweep: what tasks share is read, solved and hashed once.
"""

from pathlib import Path

from pipeline.config.builds import Builds
from pipeline.config.machine import Machine, fingerprint
from pipeline.config.material import Material, kernel_file
from pipeline.config.resolve import (
    Spaces,
    fitting,
    limits_of,
    problem_of,
    target_of,
)
from pipeline.config.select import Cell
from pipeline.config.sources import Sources
from pipeline.config.spec_files import SpecFiles
from pipeline.config.specs import Chain, Specs, Task, specs_of
from pipeline.records.kernel import Kernel
from pipeline.records.plan import PlannedTask
from pipeline.records.record import Record, digest
from pipeline.records.specs import TaskRow
from pipeline.search.formula import evaluate_number
from pipeline.search.space import constants_of


class Made(Record, frozen=True, kw_only=True):
    """A task with the specs of its stages."""

    planned: PlannedTask
    specs: Specs


class TaskMaker:
    """Makes tasks; what they share is made once."""

    def __init__(self, machine: Machine, *, root: Path, store: Path) -> None:
        self._machine = machine
        self._root = root
        self._files = SpecFiles(store)
        self.builds = Builds(store)
        self._spaces = Spaces()
        self._sources = Sources(root)
        self._source_digests: dict[str, str] = {}
        self._module_digests: dict[str, tuple[str, str | None]] = {}

    def task(self, material: Material, cell: Cell) -> Made:
        """The task of a cell with its specs on disk; raises Impossible where there is none."""
        settings = material.settings
        kernel, device = material.kernels[cell.kernel], material.devices[cell.hardware]
        optimization = material.optimizations[cell.optimization]
        where = kernel_file(self._root, cell.kernel)
        problem = problem_of(kernel, material.workloads[cell.workload], where)
        implementations = fitting(kernel, device.hardware.kind, optimization)
        # All limits, so that an error names all that a constraint may use.
        constants = constants_of(problem, limits_of(device.hardware))
        counts = self._spaces.counts(implementations, optimization, constants, where)
        reference, vendors = self._modules(kernel, where)
        task = Task(
            kernel=kernel,
            implementations=implementations,
            problem=problem,
            target=target_of(device.hardware, implementations),
            device_present=device.present,
            device=fingerprint(device, self._machine),
            optimization=optimization,
            search=settings.search,
            verify=settings.verify,
            profile=settings.profile,
            source_digests={name: self._source_digest(kernel, name) for name in implementations},
            reference_digest=reference,
            vendors_digest=vendors,
        )
        budget = settings.search.variants_per_round
        total = sum(counts.values())
        chain = specs_of(task, self.builds)
        planned = PlannedTask(
            row=_row(cell, task, material, self._written(chain)),
            variants=counts,
            proposed=total if budget is None else min(total, budget),
        )
        return Made(planned=planned, specs=chain.specs)

    def files(self) -> tuple[str, ...]:
        """Sources that were read."""
        return tuple(sorted(str(path) for path in self._sources.read))

    def _written(self, chain: Chain) -> dict[str, str]:
        for stage, file in chain.files.items():
            self._files.put(stage, file)
        return {stage: file.key for stage, file in chain.files.items()}

    def _source_digest(self, kernel: Kernel, name: str) -> str:
        implementation = kernel.implementations[name]
        key = digest(implementation)
        if key not in self._source_digests:
            self._source_digests[key] = self._sources.implementation(implementation)
        return self._source_digests[key]

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
        generate=keys["generate"],
        compile=keys["compile"],
        verify=keys["verify"],
        profile=keys["profile"],
    )
