"""Made-up submissions whose scores are known."""

from collections.abc import Sequence

from pipeline.records.outcome import Outcome
from pipeline.records.provenance import Provenance
from pipeline.records.results.profiled import ConfidenceInterval, Verdict
from pipeline.records.results.scored import (
    CandidateTime,
    HeldOutResult,
    HeldOutVerdict,
    MeasuredSpeedup,
    ScoredCandidate,
    ScoredProblem,
    Submission,
)

MADE = Provenance(created="2025-01-31T12:00:00+00:00", host="host", toolchain={}, code="code")


def ratio(value: float, spread: float = 0.02) -> ConfidenceInterval:
    """A value within 2 %, or as given."""
    return ConfidenceInterval(
        value=value, low=value / (1 + spread), high=value * (1 + spread), confidence=0.95
    )


def measured(
    speedup: float,
    *,
    spread: float = 0.02,
    compiled: float | None = None,
    held_out: Sequence[HeldOutResult] = (),
    sample: int = 0,
    name: str = "",
) -> ScoredCandidate:
    """A correct candidate that was timed against eager, and against torch.compile if that is given."""
    found = {"eager": speedup} | ({} if compiled is None else {"compile": compiled})
    return ScoredCandidate(
        solution=name or f"sample_{sample}",
        sample=sample,
        outcome=Outcome.PASSED,
        id=f"id{sample}",
        time=CandidateTime(
            seconds=ratio(1e-3 / speedup),
            speedups=tuple(_against(baseline, value, spread) for baseline, value in found.items()),
            estimated_bound_share=0.25,
            held_out=tuple(
                HeldOutVerdict(baseline="eager", sizes=f"n={number}", verdict=verdict)
                for number, verdict in enumerate(held_out)
            ),
        ),
    )


def failed(outcome: Outcome = Outcome.WRONG_VALUE, *, sample: int = 0, name: str = "") -> ScoredCandidate:
    """A candidate without a time."""
    return ScoredCandidate(
        solution=name or f"sample_{sample}",
        sample=sample,
        outcome=outcome,
        reason="y[0] = 1 < 2 & 'quoted'",
        id=f"id{sample}",
    )


def problem(
    name: str, *samples: ScoredCandidate, level: str | None = None, category: str | None = None
) -> ScoredProblem:
    """One problem with its samples."""
    return ScoredProblem(name=name, digest=f"of {name}", level=level, category=category, samples=samples)


def submission(name: str, *problems: ScoredProblem, hardware: str = "cpu") -> Submission:
    """Of one device."""
    return Submission(
        name=name,
        hardware=hardware,
        device="A processor",
        verify="standard",
        measured=True,
        problems=problems,
        provenance=MADE,
    )


def _against(baseline: str, value: float, spread: float) -> MeasuredSpeedup:
    speedup = ratio(value, spread)
    verdict: Verdict = (
        "faster" if speedup.low > 1.01 else "slower" if speedup.high < 1 / 1.01 else "indistinguishable"
    )
    return MeasuredSpeedup(baseline=baseline, speedup=speedup, verdict=verdict)
