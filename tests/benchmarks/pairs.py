"""Samples of two sides that were taken in turn, round by round, in; their ratio with its interval out."""

from pipeline.measure import statistics
from pipeline.records.record import Record
from pipeline.records.results.profiled import ConfidenceInterval

CONFIDENCE = 0.95


class Pairs(Record, frozen=True, kw_only=True):
    """A pair of samples for each round."""

    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        """Ours over theirs, of each round."""
        return tuple(ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True))

    @property
    def ratio(self) -> ConfidenceInterval:
        """Median of the rounds' ratios, ours over theirs."""
        return statistics.median(self.ratios, CONFIDENCE)
