"""Scores of a submission: problems with judged and measured samples in, shares and means with intervals out.

A problem counts once, however many samples it has; one without a sample counts as failed. Every interval has
95 % confidence and is one over problems: what another set of problems of the same kind might have given.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import NormalDist
from typing import Literal

from pipeline.performance.geometric_mean import CONFIDENCE, Logarithms, geometric_mean, logarithm
from pipeline.records.outcome import Outcome
from pipeline.records.record import Record
from pipeline.records.results.profiled import ConfidenceInterval
from pipeline.records.results.scored import CandidateTime, HeldOutResult, ScoredCandidate, ScoredProblem

THRESHOLDS = (0.0, 0.8, 1.0, 1.5, 2.0, 4.0)
"""Values of p in fast_p: those of KernelBench, Ouyang et al. 2025 (arXiv:2502.10517), section 3, and 4."""

Group = Literal["level", "category"]
Wins = Callable[[ScoredCandidate], bool]


class ThresholdShare(Record, frozen=True, kw_only=True):
    """fast_p for one p."""

    threshold: float
    share: ConfidenceInterval
    sure: ConfidenceInterval
    """Only samples whose whole interval lies above the threshold count."""


class BestOfShare(Record, frozen=True, kw_only=True):
    """What the best of k samples reaches."""

    k: int
    correct: ConfidenceInterval
    """pass@k."""


class FastBestOfShare(Record, frozen=True, kw_only=True):
    """fast_p@k."""

    k: int
    threshold: float
    share: ConfidenceInterval


class BaselineScores(Record, frozen=True, kw_only=True):
    """Scores of time against one baseline."""

    baseline: str
    fast: tuple[ThresholdShare, ...]
    fast_best_of: tuple[FastBestOfShare, ...]
    mean_all: ConfidenceInterval
    """Geometric mean over all problems, failures and slower samples counted as 1."""
    mean_correct: ConfidenceInterval | None
    """Geometric mean of the measured speed-ups; None if nothing was measured."""
    held_out: int
    """Candidates that are faster on the declared sizes and were measured on others."""
    held_out_lost: ConfidenceInterval | None
    """Share of these that are not faster on at least one of the others."""

    def at(self, threshold: float) -> ThresholdShare:
        """fast_p for one of `THRESHOLDS`."""
        return self.fast[THRESHOLDS.index(threshold)]


class Scores(Record, frozen=True, kw_only=True):
    """All scores of some problems of a submission."""

    problems: int
    excluded: int
    """Problems that are invalid: they count for nobody."""
    unanswered: int
    """Problems without a sample."""
    samples: int
    outcomes: dict[str, int]
    """Outcome -> samples, the most frequent first."""
    correct: ConfidenceInterval
    """Correctness rate: pass@1."""
    reduced: ConfidenceInterval
    """Share that is correct on reduced sizes only, which is no part of `correct`."""
    best_of: tuple[BestOfShare, ...]
    baselines: tuple[BaselineScores, ...]

    def against(self, baseline: str) -> BaselineScores | None:
        """The scores against one baseline."""
        return next((each for each in self.baselines if each.baseline == baseline), None)


def scores(problems: Sequence[ScoredProblem], baselines: Iterable[str]) -> Scores | None:
    """All scores against some baselines; None if no valid problem is left."""
    valid = [problem for problem in problems if not problem.excluded]
    if not valid:
        return None
    samples = [sample for problem in valid for sample in problem.samples]
    counts = {outcome: sum(each.outcome is outcome for each in samples) for outcome in Outcome}
    most_first = sorted(counts.items(), key=lambda pair: -pair[1])
    return Scores(
        problems=len(valid),
        excluded=len(problems) - len(valid),
        unanswered=sum(not problem.samples for problem in valid),
        samples=len(samples),
        outcomes={str(outcome): count for outcome, count in most_first if count},
        correct=best_of_share(valid, _is_correct, k=1),
        reduced=best_of_share(valid, lambda sample: sample.outcome is Outcome.PASSED_REDUCED, k=1),
        best_of=tuple(BestOfShare(k=k, correct=best_of_share(valid, _is_correct, k=k)) for k in ks_of(valid)),
        baselines=tuple(_against(valid, baseline) for baseline in baselines),
    )


def scores_by(problems: Sequence[ScoredProblem], group: Group, baselines: Iterable[str]) -> dict[str, Scores]:
    """The scores of each level or category, in order; problems without one are left out."""
    names = list(baselines)
    values = sorted({value for problem in problems if (value := getattr(problem, group)) is not None})
    found = {
        value: scores([each for each in problems if getattr(each, group) == value], names) for value in values
    }
    return {value: each for value, each in found.items() if each is not None}


def fast(baseline: str, threshold: float) -> Wins:
    """Whether a sample is correct and its speed-up above the threshold.

    Of threshold 0 it is whether the sample is correct, whether or not it was measured, as in KernelBench.
    """

    def wins(sample: ScoredCandidate) -> bool:
        found = sample.time.against(baseline) if sample.time else None
        if threshold == 0:
            return sample.correct
        return found is not None and found.speedup.value > threshold

    return wins


def surely_fast(baseline: str, threshold: float) -> Wins:
    """The same where the whole interval lies above the threshold.

    From 1 on the verdict must be `faster`, too: it asks for more where two processes that run the same code
    may differ.
    """

    def wins(sample: ScoredCandidate) -> bool:
        found = sample.time.against(baseline) if sample.time else None
        if threshold == 0:
            return sample.correct
        if found is None or not found.speedup.low > threshold:
            return False
        return threshold < 1 or found.verdict == "faster"

    return wins


def ks_of(problems: Sequence[ScoredProblem]) -> list[int]:
    """Powers of two up to the number of samples of a problem, and that number."""
    most = max((len(problem.samples) for problem in problems), default=1)
    powers = [2**power for power in range(most.bit_length())]
    return sorted({*powers, max(most, 1)})


def at_k(samples: int, wins: int, k: int) -> float:
    """Probability that one of k samples, drawn from these without replacement, wins.

    The unbiased estimator of Chen et al. 2021 (arXiv:2107.03374), equation 1. Of fewer than k samples all are
    drawn, which is too little rather than too much.
    """
    drawn = min(k, samples)
    if drawn == 0:
        return 0.0
    return 1 - math.comb(samples - wins, drawn) / math.comb(samples, drawn)


def best_of_share(problems: Sequence[ScoredProblem], wins: Wins, *, k: int) -> ConfidenceInterval:
    """Mean of `at_k` over problems, for k = 1 the share of samples that win, each problem counted once.

    The interval is that of a share (`proportion`). Several samples make a problem's value a fraction; a
    variable between 0 and 1 scatters no more than a coin of its mean, so the interval is wide enough.
    """
    found = [at_k(len(problem.samples), sum(map(wins, problem.samples)), k) for problem in problems]
    return share(math.fsum(found), len(problems))


def share(hits: float, trials: int) -> ConfidenceInterval:
    """A share with its interval."""
    low, high = proportion(hits, trials, CONFIDENCE)
    return ConfidenceInterval(value=hits / trials, low=low, high=high, confidence=CONFIDENCE)


def proportion(hits: float, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Interval of a share, by its score test (Wilson 1927, J. Amer. Stat. Assoc. 22)."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = hits / trials
    centre = share + z * z / (2 * trials)
    width = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    # At a share of 0 or 1 rounding may put the end on the other side of the share.
    return max(0.0, min(share, (centre - width) / scale)), min(1.0, max(share, (centre + width) / scale))


def mean_of_all(problems: Sequence[ScoredProblem], baseline: str) -> ConfidenceInterval:
    """Geometric mean over all problems, a failure counted as 1, and so is a sample that is slower.

    It is the speed-up of a user who takes the candidate where it is correct and faster, and keeps the
    baseline elsewhere; so a failure is never worth more than a correct sample.
    """
    return geometric_mean([_logarithms(problem, baseline, kept=True) for problem in problems])


def mean_of_correct(problems: Sequence[ScoredProblem], baseline: str) -> ConfidenceInterval | None:
    """Geometric mean of the measured speed-ups of correct samples, each problem counted once.

    The usual figure of papers. It says nothing about failures: one easy problem may suffice to lead.
    """
    found = [_logarithms(problem, baseline, kept=False) for problem in problems]
    measured = [each for each in found if len(each)]
    return geometric_mean(measured) if measured else None


def held_out_losses(problems: Sequence[ScoredProblem], baseline: str) -> tuple[int, int]:
    """Candidates that are faster on the declared sizes and were measured on others; those that lose there.

    A candidate loses if it is not `faster` on at least one of the other sizes: it was made for the sizes that
    the problem shows.
    """
    times = [sample.time for problem in problems for sample in problem.samples if sample.time]
    found = [_held_out(time, baseline) for time in times if _is_faster(time, baseline)]
    judged = [verdicts for verdicts in found if verdicts]
    return len(judged), sum(any(verdict != "faster" for verdict in verdicts) for verdicts in judged)


def fast_curve(problems: Sequence[ScoredProblem], baseline: str, values: Iterable[float]) -> list[float]:
    """fast_p for many p."""
    return [best_of_share(problems, fast(baseline, value), k=1).value for value in values]


def _is_correct(sample: ScoredCandidate) -> bool:
    return sample.correct


def _is_faster(time: CandidateTime, baseline: str) -> bool:
    found = time.against(baseline)
    return found is not None and found.verdict == "faster"


def _held_out(time: CandidateTime, baseline: str) -> list[HeldOutResult]:
    return [each.verdict for each in time.held_out if each.baseline == baseline]


def _against(problems: Sequence[ScoredProblem], baseline: str) -> BaselineScores:
    judged, lost = held_out_losses(problems, baseline)
    return BaselineScores(
        baseline=baseline,
        fast=tuple(
            ThresholdShare(
                threshold=threshold,
                share=best_of_share(problems, fast(baseline, threshold), k=1),
                sure=best_of_share(problems, surely_fast(baseline, threshold), k=1),
            )
            for threshold in THRESHOLDS
        ),
        fast_best_of=tuple(
            FastBestOfShare(
                k=k, threshold=threshold, share=best_of_share(problems, fast(baseline, threshold), k=k)
            )
            for k in ks_of(problems)
            for threshold in THRESHOLDS
        ),
        mean_all=mean_of_all(problems, baseline),
        mean_correct=mean_of_correct(problems, baseline),
        held_out=judged,
        held_out_lost=share(lost, judged) if judged else None,
    )


def _logarithms(problem: ScoredProblem, baseline: str, *, kept: bool) -> Logarithms:
    """`kept`: failures and slower samples count as 1, and a problem without a sample does."""
    found: Logarithms = []
    for sample in problem.samples:
        measured = sample.time.against(baseline) if sample.time else None
        ratio = measured.speedup if measured else None
        if ratio is not None and (ratio.value > 1 or not kept):
            found.append(logarithm(ratio))
        elif kept:
            found.append((0.0, 0.0, 0.0))
    return found or ([(0.0, 0.0, 0.0)] if kept else [])
