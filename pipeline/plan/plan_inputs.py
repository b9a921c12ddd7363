"""What a plan is made of. In: the overrides of its jobs. Out: the chosen options as records, and the cells.

A run has one job, a sweep many. Jobs that differ only in which kernels, workloads, targets and optimizations
they choose share one PlanInputs; each other choice or value makes another one, of options composed once.
"""

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pipeline.plan.config.compose import Composer, Compositions, composer
from pipeline.plan.config.groups import AXES, option_file
from pipeline.plan.config.options import ExperimentSettings, OptionLoader
from pipeline.plan.config.overrides import Overrides, read_override
from pipeline.plan.local_machine import Machine, ResolvedHardware, resolve
from pipeline.plan.memoize import Memoized
from pipeline.records.configuration.experiment import Experiment, Selection
from pipeline.records.configuration.hardware import Hardware
from pipeline.records.configuration.kernel import Kernel
from pipeline.records.configuration.optimization import Optimization
from pipeline.records.configuration.stage_settings import Verify
from pipeline.records.configuration.workload import Workload
from pipeline.records.errors import ConfigError, hint
from pipeline.records.record import Record, to_json
from pipeline.search.strategy_registry import search_inputs


class GridCell(Record, frozen=True, kw_only=True):
    """One kernel, workload, hardware and optimization, by name; a workload with other sizes names them."""

    kernel: str
    workload: str
    hardware: str
    optimization: str


def cells(
    experiment: Experiment, chosen: Mapping[str, tuple[str, ...]], given: Collection[str] = ()
) -> tuple[GridCell, ...]:
    """The cells in the order of the grids, each once.

    Dimensions of workloads of which a size was `given` keep it, whatever sizes the grids have for them.

    A chosen name that the experiment has on that axis narrows its grids to it; one that it does not have
    replaces the axis. Where no grid holds the combination that was asked for, the grids that hold most of its
    names take the others. Several names mean what one run for each combination of them would mean.
    """
    found: dict[GridCell, None] = {}
    for names in itertools.product(*chosen.values()):
        combination = dict(zip(chosen, names, strict=True))
        grids = [(grid, _narrowed(grid, experiment, combination)) for grid in experiment.select]
        full = [(grid, narrowed) for grid, narrowed in grids if all(narrowed.values())]
        if not full:
            # All names of an axis would bring `defaults`, which is meant for one target, to the others.
            held = [sum(map(bool, narrowed.values())) for _, narrowed in grids]
            instead = {axis: (name,) for axis, name in combination.items()}
            nearest = [each for each, count in zip(grids, held, strict=True) if count == max(held)]
            full = [(grid, narrowed | instead) for grid, narrowed in nearest]
        for grid, narrowed in full:
            varied = {name: sizes for name, sizes in grid.dimensions.items() if name not in given}
            labels = [
                _sizes(dict(zip(varied, each, strict=True))) for each in itertools.product(*varied.values())
            ]
            for cell in itertools.product(*(narrowed[axis] for axis in AXES)):
                one = dict(zip(AXES, cell, strict=True))
                for label in labels:
                    found[GridCell(**{**one, "workload": one["workload"] + label})] = None
    return tuple(found)


def _sizes(sizes: Mapping[str, int]) -> str:
    """Of a workload's dimensions, as they follow its name: `[tokens=4 hidden=64]`."""
    return f"[{' '.join(f'{name}={size}' for name, size in sizes.items())}]" if sizes else ""


def _base(workload: str) -> str:
    """The option of which a cell has other sizes."""
    return workload.partition("[")[0]


def _narrowed(
    grid: Selection, experiment: Experiment, combination: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    narrowed: dict[str, tuple[str, ...]] = {}
    for axis in AXES:
        names: tuple[str, ...] = getattr(grid, axis)
        if axis in combination:
            name = combination[axis]
            names = (name,) if name in names or name not in _all(experiment.select, axis) else ()
        narrowed[axis] = names
    return narrowed


def _all(grids: Iterable[Selection], axis: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for grid in grids for name in getattr(grid, axis)))


SIZES = "workload.dimensions."
"""How overrides of a workload's sizes begin."""
Lines = tuple[str, ...]
"""The overrides of one job."""


class JobCells(Record, frozen=True, kw_only=True):
    """The part of the grid that one job is."""

    number: int
    cells: tuple[GridCell, ...]


class PlanInputs(Record, frozen=True, kw_only=True):
    """Options by name, and the jobs that are made of them."""

    settings: ExperimentSettings
    jobs: tuple[JobCells, ...]
    kernels: dict[str, Kernel]
    workloads: dict[str, Workload]
    devices: dict[str, ResolvedHardware]
    optimizations: dict[str, Optimization]
    presets: dict[str, Verify]
    """Those by which mutants are judged."""
    every_kernel: dict[str, Kernel] = {}
    """All that are declared, where a language model learns from them."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Alike:
    """Jobs that differ in choices on the axes alone."""

    overrides: Overrides
    """Of the first one."""
    catalogue: OptionLoader
    settings: ExperimentSettings
    jobs: list[JobCells]


def gather_inputs(
    jobs: Sequence[Lines], root: Path, machine: Machine, known: Compositions | None = None
) -> tuple[PlanInputs, ...]:
    """Compose and check what the jobs' overrides choose; `known` is what was composed already.

    Raises
    ------
    ConfigError
        A yaml or an override is wrong.
    """
    with composer(root / "conf", known) as hydra:
        groups = _group(jobs, hydra, root)
        hydra.prepare(
            {
                axis: [_base(getattr(cell, axis)) for each in groups for cell in _cells(each.jobs)]
                for axis in AXES
            }
        )
        devices = _Devices(machine)
        return tuple(_material(each, root, devices) for each in groups)


def _group(jobs: Sequence[Lines], hydra: Composer, root: Path) -> list[_Alike]:
    """Jobs grouped by their choices and values other than the axes' options, in order of first occurrence."""
    groups: dict[bytes, _Alike] = {}
    first: OptionLoader | None = None
    for number, lines in enumerate(jobs):
        overrides = hydra.reader.read(lines)
        axes = {group: names for group, names in overrides.choices.items() if group in AXES}
        settings = {group: names for group, names in overrides.choices.items() if group not in AXES}
        key = to_json([settings, overrides.values])
        if key not in groups:
            catalogue = first.of(overrides) if first is not None else OptionLoader(hydra, overrides, root)
            first = first or catalogue
            groups[key] = _Alike(
                overrides=overrides, catalogue=catalogue, settings=catalogue.settings(), jobs=[]
            )
        alike = groups[key]
        given = {read_override(line).key_or_group for line in overrides.values.get("workload", ())}
        sizes = {key.removeprefix(SIZES) for key in given if key.startswith(SIZES)}
        alike.jobs.append(JobCells(number=number, cells=cells(alike.settings.experiment, axes, sizes)))
    return list(groups.values())


class _Devices:
    """The machine's view of hardware targets; jobs that have the same have one."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._resolved = Memoized(self._resolve)

    def of(self, hardware: Hardware, declared: Mapping[str, Hardware]) -> ResolvedHardware:
        """A target among those that are declared."""
        return self._resolved(hardware, *declared, *declared.values())

    def _resolve(self, hardware: Hardware, *declared: Any) -> ResolvedHardware:
        half = len(declared) // 2
        return resolve(hardware, dict(zip(declared[:half], declared[half:], strict=True)), self.machine)


def _material(each: _Alike, root: Path, devices: _Devices) -> PlanInputs:
    catalogue, settings, conf = each.catalogue, each.settings, root / "conf"
    chosen = _cells(each.jobs)
    kernels = catalogue.kernels(cell.kernel for cell in chosen)
    workloads = catalogue.workloads(_base(cell.workload) for cell in chosen)
    catalogue.check_dimensions(kernels, workloads)
    experiment = option_file(conf, "experiment", settings.experiment.name)
    for name in dict.fromkeys(cell.workload for cell in chosen if cell.workload not in workloads):
        workloads[name] = _sized(workloads[_base(name)], name, experiment)
    declared = catalogue.hardware(cell.hardware for cell in chosen)
    # Which device is here is decided among all declared ones; without a GPU there is nothing to decide.
    known: dict[str, Hardware] = catalogue.all_hardware() if devices.machine.has_devices else declared
    return PlanInputs(
        settings=settings,
        jobs=tuple(each.jobs),
        kernels=kernels,
        workloads=workloads,
        devices={name: devices.of(one, {**known, **declared}) for name, one in declared.items()},
        optimizations=catalogue.optimizations(
            (cell.optimization for cell in chosen), tuple(kernels.values())
        ),
        presets=catalogue.presets(
            settings.mutation.presets,
            f"{option_file(conf, 'mutation', settings.mutation.name)}: presets",
        ),
        every_kernel=catalogue.all_kernels() if search_inputs(settings.search).brief is not None else {},
    )


def overrides_of(workload: str) -> tuple[str, ...]:
    """The sizes in a cell's workload, `base[tokens=4 hidden=64]`, as overrides of its option."""
    return tuple(f"{SIZES}{each}" for each in workload.partition("[")[2].removesuffix("]").split())


def _sized(workload: Workload, name: str, where: str) -> Workload:
    """The workload with the sizes that stand in the name."""
    pairs = (each.removeprefix(SIZES).split("=") for each in overrides_of(name))
    sizes = {dimension: int(size) for dimension, size in pairs}
    for each in sizes:
        if each not in workload.dimensions:
            known = hint(each, list(workload.dimensions))
            raise ConfigError(f"{where}: dimensions: {workload.name} has no '{each}'{known}")
    return msgspec.structs.replace(workload, dimensions={**workload.dimensions, **sizes})


def _cells(jobs: Sequence[JobCells]) -> tuple[GridCell, ...]:
    """Those of all of them, each once."""
    return tuple(dict.fromkeys(cell for job in jobs for cell in job.cells))


def kernel_file(root: Path, name: str) -> str:
    """A kernel's yaml as messages name it."""
    return option_file(root / "conf", "kernel", name)
