"""What a plan is made of. In: overrides. Out: the chosen options as records, and the cells of the grid."""

from pathlib import Path

from pipeline.config.catalogue import Catalogue, Settings
from pipeline.config.compose import composer
from pipeline.config.groups import AXES, option_file
from pipeline.config.machine import Device, Machine, resolve
from pipeline.config.overrides import parse
from pipeline.config.select import Cell, cells
from pipeline.records.kernel import Kernel
from pipeline.records.optimization import Optimization
from pipeline.records.record import Record
from pipeline.records.settings import Verify
from pipeline.records.workload import Workload


class Material(Record, frozen=True, kw_only=True):
    """Options by name."""

    settings: Settings
    cells: tuple[Cell, ...]
    kernels: dict[str, Kernel]
    workloads: dict[str, Workload]
    devices: dict[str, Device]
    optimizations: dict[str, Optimization]
    presets: dict[str, Verify]
    """Those by which mutants are judged."""


def gather(lines: tuple[str, ...], root: Path, machine: Machine) -> Material:
    """Compose and check what the overrides choose.

    Raises
    ------
    ConfigError
        A yaml or an override is wrong.
    """
    conf = root / "conf"
    overrides = parse(lines, conf)
    with composer(conf) as hydra:
        catalogue = Catalogue(hydra, overrides, root)
        settings = catalogue.settings()
        axes = {group: names for group, names in overrides.choices.items() if group in AXES}
        chosen = cells(settings.experiment, axes)
        hydra.prepare({axis: [getattr(cell, axis) for cell in chosen] for axis in AXES})
        kernels = catalogue.kernels(cell.kernel for cell in chosen)
        declared = catalogue.hardware(cell.hardware for cell in chosen)
        # Which device is here is decided among all declared ones; without a GPU there is nothing to decide.
        known = catalogue.all_hardware() if machine.sees_a_gpu else declared
        return Material(
            settings=settings,
            cells=chosen,
            kernels=kernels,
            workloads=catalogue.workloads(cell.workload for cell in chosen),
            devices={name: resolve(each, {**known, **declared}, machine) for name, each in declared.items()},
            optimizations=catalogue.optimizations(
                (cell.optimization for cell in chosen), tuple(kernels.values())
            ),
            presets=catalogue.presets(
                settings.mutation.presets,
                f"{option_file(conf, 'mutation', settings.mutation.name)}: presets",
            ),
        )


def kernel_file(root: Path, name: str) -> str:
    """A kernel's yaml as messages name it."""
    return option_file(root / "conf", "kernel", name)
