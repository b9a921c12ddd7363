"""From a verdict to a number. In: what the stages said of a variant. Out: its reward."""

from pipeline.execution.gym.evaluation import VariantEvaluation
from pipeline.records.outcome import Outcome
from pipeline.records.record import Record
from pipeline.records.results.profiled import Comparison

CHEATED = frozenset({Outcome.TAMPERED, Outcome.OVER_ROOFLINE})
"""What touched the harness, did the work elsewhere, or is faster than the device can be."""


class Rewards(Record, frozen=True, kw_only=True):
    """How much is given for what. A verified and measured variant gets the lower bound of its speed-up."""

    failed: float = 0.0
    """For what did not verify, and for what verified and could not be measured."""
    cheated: float = -1.0
    """In place of `failed`, for what tried to cheat."""

    def __post_init__(self) -> None:
        """Nothing that did not verify may pay."""
        for field in ("failed", "cheated"):
            if not getattr(self, field) <= 0:
                raise ValueError(f"{field}: expected 0 or less, got {getattr(self, field)}")

    def of(self, judged: VariantEvaluation, baseline: str) -> float:
        """The reward against a baseline."""
        if judged.outcome in CHEATED:
            return self.cheated
        found = comparison(judged, baseline)
        return self.failed if found is None else max(0.0, found.speedup.low)


def comparison(judged: VariantEvaluation, baseline: str) -> Comparison | None:
    """The measured speed-up; None for what did not pass every stage, or where the baseline is absent."""
    measured = judged.result.profiled
    if judged.failure is not None or measured is None:
        return None
    return next((each for each in measured.comparisons if each.baseline == baseline), None)
