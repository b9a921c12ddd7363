"""Which cells of the grid are wanted: the experiment's grids, narrowed or changed by what the user chose."""

import itertools
from collections.abc import Iterable, Mapping

from pipeline.plan.config.groups import AXES
from pipeline.records.configuration.experiment import Experiment, Selection
from pipeline.records.record import Record


class GridCell(Record, frozen=True, kw_only=True):
    """One kernel, workload, hardware and optimization, by name."""

    kernel: str
    workload: str
    hardware: str
    optimization: str


def cells(experiment: Experiment, chosen: Mapping[str, tuple[str, ...]]) -> tuple[GridCell, ...]:
    """The cells in the order of the grids, each once.

    A chosen name that the experiment has on that axis narrows its grids to it; one that it does not have
    replaces the axis. Where no grid holds the combination that was asked for, it is a grid of its own: the
    chosen names, and on the other axes all that the experiment has. Several names mean what one run for each
    combination of them would mean.
    """
    found: dict[GridCell, None] = {}
    for names in itertools.product(*chosen.values()):
        combination = dict(zip(chosen, names, strict=True))
        grids = [_narrowed(grid, experiment, combination) for grid in experiment.select]
        full = [grid for grid in grids if all(grid.values())]
        if not full:
            every = {axis: _all(experiment.select, axis) for axis in AXES}
            full = [every | {axis: (name,) for axis, name in combination.items()}]
        for grid in full:
            for cell in itertools.product(*(grid[axis] for axis in AXES)):
                found[GridCell(**dict(zip(AXES, cell, strict=True)))] = None
    return tuple(found)


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
