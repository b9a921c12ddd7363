"""What a job of a sweep gives back to the sweeper: one number, and which way it is better."""

from typing import Literal

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
    """A job that came to its end without a number: a device is absent, nothing verified."""

    reason: str


class Unfinished(Record, frozen=True, kw_only=True, tag="unfinished"):
    """A job that did not come to its end."""

    reason: str


JobResult = Reached | Missed | Unfinished
