"""Candidates from elsewhere that passed: what there is to time, and what timing measured of each."""

from pipeline.records.configuration.hardware import Target
from pipeline.records.configuration.stage_settings import Profile
from pipeline.records.outcome import Failure
from pipeline.records.planning.specs import Build
from pipeline.records.provenance import Provenance
from pipeline.records.record import Record
from pipeline.records.results.judged import ProblemFolder
from pipeline.records.results.profiled import Bound, Comparison, Profiled


class TimingSpec(Record, frozen=True, kw_only=True):
    """timing: one problem, its candidates and their verdicts -> a measurement of each that passed."""

    parent: str
    """Key of judge, whose verdicts say which candidates passed."""
    problem: ProblemFolder
    hardware: str
    """Name of the target."""
    target: Target
    device_present: bool
    device: str
    """Fingerprint of the device that measures; `absent` where it is not here."""
    settings: Profile
    held_out: Profile
    """How the sizes that the problem does not declare are measured: quickly."""
    build: Build


class EstimatedBound(Record, frozen=True, kw_only=True):
    """Least time of a call of `Model`, estimated from the operators that it dispatches and measured ceilings.

    An algorithm that needs fewer operations or bytes than these operators may be faster.
    """

    seconds: float
    bound: Bound
    """Which ceiling it is."""
    matrix_flops: float
    """Of matrix products, convolutions and attention, as `torch.utils.flop_counter` counts them."""
    vector_flops: float
    """One for each element that any other operator computes from."""
    read: float
    """Bytes of inputs and parameters, each element that is used counted once: everything is fused."""
    written: float
    """Bytes of outputs."""
    dtype: str
    """Whose peak bounds it: that of most operations."""


class HeldOutTiming(Record, frozen=True, kw_only=True):
    """A candidate on sizes that the problem does not declare, measured quickly."""

    sizes: dict[str, int]
    """Module-level name -> value, of those that differ from the declared ones."""
    result: Profiled | Failure


class TimedRecord(Record, frozen=True, kw_only=True):
    """One candidate's stored measurement; its name and its problem's are those of the first time."""

    problem: str
    solution: str
    entry: str
    """Of the store, below `timing/`."""
    result: Profiled | Failure
    """Baselines are `eager` (`Model`) and `compile` (`torch.compile` of it), as the profile names them."""
    estimate: EstimatedBound | None = None
    """None where the operators of `Model` could not be counted, or the device is absent."""
    held_out: tuple[HeldOutTiming, ...] = ()
    """Empty where the problem names no sizes, or the candidate is not faster than `Model` on the declared
    ones."""
    seconds: float
    """Wall time of measuring it."""
    provenance: Provenance

    @property
    def bound_share(self) -> float | None:
        """Share of the estimated speed of light: estimated bound over measured time; an estimate itself."""
        if self.estimate is None or not isinstance(self.result, Profiled):
            return None
        return self.estimate.seconds / self.result.time.value

    def compared(self, baseline: str) -> Comparison | None:
        """With one of its baselines; None where that or the candidate could not be measured."""
        return compared(self.result, baseline)

    def only_declared(self, baseline: str) -> tuple[dict[str, int], ...] | None:
        """Held-out sizes on which it is not faster than a baseline, though it is on the declared ones.

        None where it is not faster on the declared sizes, or there are no others to compare them with. A
        candidate that fails on other sizes is not faster there.
        """
        declared = self.compared(baseline)
        if declared is None or declared.verdict != "faster" or not self.held_out:
            return None
        return tuple(
            each.sizes
            for each in self.held_out
            if (other := compared(each.result, baseline)) is None or other.verdict != "faster"
        )


def compared(result: Profiled | Failure, baseline: str) -> Comparison | None:
    """A measurement's comparison with a baseline; None where there is none."""
    if isinstance(result, Failure):
        return None
    return next((each for each in result.comparisons if each.baseline == baseline), None)


class TimingOutput(Record, frozen=True, kw_only=True):
    """What timing writes for one problem: candidates that passed, in the order of the verdicts."""

    key: str
    records: tuple[TimedRecord, ...]
