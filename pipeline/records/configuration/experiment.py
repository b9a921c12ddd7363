"""A named selection of tasks."""

from pipeline.records.record import Record


class Selection(Record, frozen=True, kw_only=True):
    """A grid: the product of these names."""

    kernel: tuple[str, ...]
    """Options of `conf/kernel`."""
    workload: tuple[str, ...]
    """Options of `conf/workload`."""
    hardware: tuple[str, ...]
    """Options of `conf/hardware`."""
    optimization: tuple[str, ...]
    """Options of `conf/optimization`."""
    dimensions: dict[str, tuple[int, ...]] = {}
    """Sizes that dimensions of the workloads take in place of their own, in all combinations."""


class Experiment(Record, frozen=True, kw_only=True):
    """The union of its grids, without duplicates."""

    name: str
    """Name of the option, equal to the file's."""
    description: str
    """One sentence for listings and reports."""
    select: tuple[Selection, ...]
    """The grids."""
