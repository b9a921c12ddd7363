"""What coding agents submitted: one record per submission, with its verdict."""

from pipeline.records.record import Record
from pipeline.records.results.judged import Verdict
from pipeline.records.results.profiled import ConfidenceInterval
from pipeline.records.results.profiled import Verdict as ComparisonVerdict


class AttemptSpeedup(Record, frozen=True, kw_only=True):
    """The attempt against a baseline that was measured with it."""

    baseline: str
    speedup: ConfidenceInterval
    """Baseline over attempt: above 1 is faster."""
    verdict: ComparisonVerdict


class MeasuredAttempt(Record, frozen=True, kw_only=True):
    """The time of an attempt that passed."""

    seconds: ConfidenceInterval
    """Median of a call."""
    speedups: tuple[AttemptSpeedup, ...]
    estimate_bound_share: float | None = None
    """Share of the estimated speed of light."""


class Attempt(Record, frozen=True, kw_only=True):
    """One submission of one client."""

    client: str
    """Name that the client gave itself, or that the server was started with."""
    conversation: str
    """Equal for all submissions to one server process."""
    order: int
    """Position among all submissions of the client, from 1."""
    number: int
    """Position among its submissions to this problem, from 1."""
    created: str
    """UTC, ISO 8601."""
    hardware: str
    problem_digest: str
    problem_source: str
    """Digest of the text of `problem.py`, which is stored as sources are."""
    source: str
    """Digest of the text; the file is `agents/sources/<digest>.py`."""
    verdict: Verdict
    known: bool
    """Whether the verdict came from the store."""
    seconds: float
    """Wall time that the client is charged for; 0 if the verdict was known."""
    measured: MeasuredAttempt | None = None
    """None if it was not measured."""
    unmeasured: str | None = None
    """Why a measurement that was asked for did not come about: outcome and reason."""
