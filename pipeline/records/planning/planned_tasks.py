"""What the plan found: the tasks of an experiment or of a sweep's jobs, and what it left out."""

from pipeline.records.planning.objective import Objective
from pipeline.records.planning.specs import TaskRow
from pipeline.records.record import Record


class PlannedTask(Record, frozen=True, kw_only=True):
    """One task with the number of its variants."""

    row: TaskRow
    variants: dict[str, int]
    """Implementation -> valid variants in its space."""
    proposed: int
    """Variants of one round: all of them, or the search's budget."""


class PrunedCell(Record, frozen=True, kw_only=True):
    """A cell of the grid that is no task."""

    kernel: str
    workload: str
    hardware: str
    optimization: str
    reason: str

    def __str__(self) -> str:
        """One line for a list."""
        cell = " x ".join((self.kernel, self.workload, self.hardware, self.optimization))
        return f"{cell}: {self.reason}"


class PlannedMutation(Record, frozen=True, kw_only=True):
    """Mutants of one implementation of a kernel."""

    key: str
    kernel: str
    implementation: str
    reported: bool
    """Whether the experiment's report waits for them."""


class Sweep(Record, frozen=True, kw_only=True):
    """What is planned together (`snakemake --config sweep=FILE`): the overrides of each job."""

    jobs: tuple[tuple[str, ...], ...]


class PlannedJob(Record, frozen=True, kw_only=True):
    """One job of a sweep: which of the plan's tasks are its own; jobs may share them."""

    overrides: tuple[str, ...]
    tasks: tuple[str, ...]
    """`TaskRow.task` of each."""
    pruned: tuple[str, ...]
    """Cells that are no task, each with its reason."""
    objective: Objective


class Plan(Record, frozen=True, kw_only=True):
    """An experiment, or the jobs of a sweep, resolved; the specs of its stages lie under artifacts/plan/."""

    experiment: str
    tasks: tuple[PlannedTask, ...]
    pruned: tuple[PrunedCell, ...]
    mutations: tuple[PlannedMutation, ...] = ()
    aggregate: str
    """Key of aggregate, report and track."""
    jobs: tuple[PlannedJob, ...] = ()
    """A run without a sweep is one."""
