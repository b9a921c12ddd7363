"""What a search learns from: a variant of an earlier round, and what the stages said of it."""

from typing import Literal

from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.outcome import Outcome
from pipeline.records.record import Record
from pipeline.records.results.compiled import StaticFacts
from pipeline.records.results.diagnosed import Finding
from pipeline.records.results.profiled import ConfidenceInterval
from pipeline.records.results.variant import Variant

StageOfTrial = Literal["generate", "compile", "verify", "profile"]
"""`generate`: the variant was proposed and no stage has a record of it."""


class Trial(Record, frozen=True, kw_only=True):
    """A variant that was evaluated, whatever came of it: failures teach a search as well.

    `seconds` is set only with the outcome `passed`. What is absent was not found out: the stage was not
    reached, or this device cannot tell.
    """

    variant: Variant
    round: int
    """Counted from 0."""
    stage: StageOfTrial
    """The last one that the variant reached; that of the failure, if it failed."""
    outcome: Outcome
    reason: str | None = None
    """One line; None where it passed."""
    seconds: ConfidenceInterval | None = None
    """Seconds per call of the full measurement (`Profiled.time`)."""
    samples: tuple[float, ...] = ()
    """Seconds per call, one per batch, of the full measurement, as measured."""
    screened: ConfidenceInterval | None = None
    """Seconds per call of a brief measurement: a hint for the search, never a result."""
    screened_on: dict[str, int] | None = None
    """Dimensions of the smaller shape of that brief measurement: such times compare among themselves only."""
    joules: float | None = None
    """Energy of one call."""
    error: float | None = None
    """Largest absolute error that verify saw."""
    facts: StaticFacts | None = None
    """Of what compiled."""
    diagnosis: tuple[Finding, ...] = ()
    spent: float = 0.0
    """Seconds that compile, verify and profile took for it when they ran, whether or not the store had it."""
    spent_joules: float | None = None
    """Energy that the device's counter saw while the variant was measured; None where it has none."""

    def __post_init__(self) -> None:
        """A time without a pass cannot be written down, nor a failure without its reason."""
        passed = self.outcome is Outcome.PASSED
        if (self.seconds is not None or self.samples) and not passed:
            raise ValueError(f"a trial with the outcome '{self.outcome}' has no full measurement")
        if passed == (self.reason is not None):
            raise ValueError(f"a trial with the outcome '{self.outcome}' and the reason {self.reason!r}")

    @property
    def point(self) -> tuple[str, dict[str, TunableValue]]:
        """Implementation and tunables: what a strategy calls the variant."""
        return self.variant.implementation, self.variant.tunables
