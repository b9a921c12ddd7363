"""Which cells of the grid are wanted: the experiment's grids, narrowed or changed by what the user chose."""

import itertools
from collections.abc import Iterable, Mapping

from pipeline.config.groups import AXES
from pipeline.records.experiment import Experiment, Selection
from pipeline.records.record import Record


class Cell(Record, frozen=True, kw_only=True):
    """One kernel, workload, hardware and optimization, by name."""

    kernel: str
    workload: str
    hardware: str
    optimization: str


def cells(experiment: Experiment, chosen: Mapping[str, tuple[str, ...]]) -> tuple[Cell, ...]:
    """The cells in the order of the grids, each once.

    A chosen name that the experiment has on that axis narrows its grids to it; one that it does not have
    replaces the axis. Where no grid holds the combination that was asked for, it is a grid of its own: the
    chosen names, and on the other axes all that the experiment has.
    """
    grids = [_narrowed(grid, experiment, chosen) for grid in experiment.select]
    full = [grid for grid in grids if all(grid.values())]
    if not full:
        full = [{axis: chosen.get(axis) or _all(experiment.select, axis) for axis in AXES}]
    found = (
        Cell(**dict(zip(AXES, names, strict=True)))
        for grid in full
        for names in itertools.product(*(grid[axis] for axis in AXES))
    )
    return tuple(dict.fromkeys(found))


def _narrowed(
    grid: Selection, experiment: Experiment, chosen: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    narrowed = {}
    for axis in AXES:
        names: tuple[str, ...] = getattr(grid, axis)
        if axis in chosen:
            here = _all(experiment.select, axis)
            names = tuple(name for name in chosen[axis] if name in names or name not in here)
        narrowed[axis] = names
    return narrowed


def _all(grids: Iterable[Selection], axis: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for grid in grids for name in getattr(grid, axis)))
