"""A named selection of tasks."""

from pipeline.records.record import Record


class Selection(Record, frozen=True, kw_only=True):
    """A grid: the product of these names."""

    kernel: tuple[str, ...]
    workload: tuple[str, ...]
    hardware: tuple[str, ...]
    optimization: tuple[str, ...]


class Experiment(Record, frozen=True, kw_only=True):
    """The union of its grids, duplicates once."""

    name: str
    description: str
    select: tuple[Selection, ...]
