"""What the plan found: the tasks of an experiment or of a sweep's jobs, and what it left out."""

from typing import Literal

from pipeline.records.planning.specs import TaskRow
from pipeline.records.record import Record

Direction = Literal["minimize", "maximize"]
Measured = Literal["time", "speedup", "energy"]

DIRECTIONS: dict[Measured, Direction] = {"time": "minimize", "speedup": "maximize", "energy": "minimize"}
UNITS: dict[Measured, str] = {"time": "s", "speedup": "x", "energy": "J"}


class Objective(Record, frozen=True, kw_only=True):
    """A quantity of the best verified variant (`conf/objective/`); of several tasks the geometric mean."""

    name: str
    """Name of the option, equal to the file's."""
    description: str
    """One sentence for listings and reports."""
    quantity: Measured
    """`time`: median seconds per call; `speedup`: the baseline's time over the variant's; `energy`: joules
    per call."""
    direction: Direction
    """Which direction is better; a sweeper's settings can refer to it as `${objective.direction}`."""
    baseline: str | None = None
    """For `speedup`: the baseline, one of `profile.baselines`."""

    def __post_init__(self) -> None:
        """The direction is the quantity's, and a speed-up has a baseline."""
        if self.direction != DIRECTIONS[self.quantity]:
            right = DIRECTIONS[self.quantity]
            raise ValueError(f"direction: got {self.direction}; {self.quantity} is something to {right}")
        if (self.baseline is None) == (self.quantity == "speedup"):
            expected = "missing with" if self.baseline is None else "stands only with"
            raise ValueError(f"baseline: {expected} quantity: speedup")

    @property
    def unit(self) -> str:
        """Of the number."""
        return UNITS[self.quantity]


class Reached(Record, frozen=True, kw_only=True, tag="reached"):
    """The number of a job."""

    value: float
    unit: str


class Missed(Record, frozen=True, kw_only=True, tag="missed"):
    """A job that finished without a number: a device is absent, nothing verified."""

    reason: str


class Unfinished(Record, frozen=True, kw_only=True, tag="unfinished"):
    """A job that did not finish."""

    reason: str


JobResult = Reached | Missed | Unfinished


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
