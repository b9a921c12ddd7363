"""Samples in, statements out: medians with intervals, the speed-up with its verdict, and whether time drifts.

All intervals are percentile bootstraps (Efron and Tibshirani 1993, chapter 13) over batches. Candidate and
baseline were timed side by side in each round, so a resample takes whole rounds: what disturbed both at once
cancels in the ratio.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from pipeline.records.results.profiled import ConfidenceInterval, Verdict

RESAMPLES = 2000
POWER = 0.8

Samples = NDArray[np.float64]

RESOLUTION = 0.01
"""Relative difference below which nothing is called faster or slower: two processes that run the same code
differ by about as much for as long as they live, through where their pages lie. What that makes beyond it is
for further processes to show (`pipeline.measure.comparison.process_agreement`)."""
NEAR = 0.10
"""Relative difference up to which equals may seem different because of where two processes lie: 3 to 6 % were
seen of torch's calls of some microseconds."""


def near(ratio: ConfidenceInterval) -> bool:
    """Whether the interval reaches to where a difference may be one of places alone."""
    return ratio.low < 1 + NEAR and ratio.high > 1 / (1 + NEAR)


def verdict(ratio: ConfidenceInterval, room: float = 1 + RESOLUTION) -> Verdict:
    """What the interval of a speed-up allows to say: it must lie beyond `room`, on one side of 1."""
    if ratio.low > room:
        return "faster"
    if ratio.high < 1 / room:
        return "slower"
    return "indistinguishable"


def median(samples: Sequence[float], confidence: float) -> ConfidenceInterval:
    """Median of the samples, in their unit."""
    values = np.asarray(samples, dtype=np.float64)
    resampled = np.median(values[_rounds(len(values))], axis=1)
    return _interval(float(np.median(values)), resampled, confidence)


def speedup(candidate: Sequence[float], baseline: Sequence[float], confidence: float) -> ConfidenceInterval:
    """Baseline's median over candidate's; the samples are paired by round.

    Raises
    ------
    ValueError
        The samples are not paired.
    """
    ours, theirs = _paired(candidate, baseline)
    rounds = _rounds(len(ours))
    ratios = np.median(theirs[rounds], axis=1) / np.median(ours[rounds], axis=1)
    return _interval(float(np.median(theirs) / np.median(ours)), ratios, confidence)


def minimum_detectable(candidate: Sequence[float], baseline: Sequence[float], confidence: float) -> float:
    """The relative difference that would be called faster or slower with a probability of 80 %.

    The usual sum of two quantiles of the normal distribution (Cohen 1988, chapter 2) times the bootstrap's
    standard error of the log ratio, beyond what no verdict looks at (`RESOLUTION`).
    """
    ours, theirs = _paired(candidate, baseline)
    rounds = _rounds(len(ours))
    ratios = np.log(np.median(theirs[rounds], axis=1) / np.median(ours[rounds], axis=1))
    normal = NormalDist()
    quantiles = normal.inv_cdf((1 + confidence) / 2) + normal.inv_cdf(POWER)
    return float((1 + RESOLUTION) * math.exp(quantiles * float(np.std(ratios))) - 1)


def relative_half_width(interval: ConfidenceInterval) -> float:
    """Half the interval's width over its value."""
    return (interval.high - interval.low) / (2 * interval.value)


def drift(samples: Sequence[float]) -> float | None:
    """Relative change from the first to the second half, where the trend is no chance; else None.

    Mann-Kendall test at the 1 % level (Mann 1945, Econometrica 13), normal approximation.
    """
    values = np.asarray(samples, dtype=np.float64)
    count = len(values)
    if count < 8:
        return None
    score = float(np.sign(values[None, :] - values[:, None])[np.triu_indices(count, 1)].sum())
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    if abs(score) < 2.58 * deviation:
        return None
    half = count // 2
    return float(np.median(values[half:]) / np.median(values[:half])) - 1


def student(confidence: float, degrees: int) -> float:
    """The quantile that bounds so much of the middle of Student's distribution.

    Its distribution function is a finite sum for whole degrees of freedom (Abramowitz and Stegun 1964, 26.7.3
    and 26.7.4); it rises with the angle, so halving finds the quantile. scipy has it too, but a machine that
    runs a bundle need not have scipy.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        if _middle(angle, degrees) < confidence:
            low = angle
        else:
            high = angle
    return math.sqrt(degrees) * math.tan(low)


def _middle(angle: float, degrees: int) -> float:
    """Probability of lying within the quantile `sqrt(degrees) * tan(angle)`."""
    cosine, odd = math.cos(angle), degrees % 2
    term, total = cosine if odd else 1.0, 0.0
    for power in range(odd, degrees - 1, 2):
        total += term
        term *= cosine * cosine * (power + 1) / (power + 2)
    if not odd:
        return math.sin(angle) * total
    return 2 / math.pi * (angle + math.sin(angle) * total)


def _paired(candidate: Sequence[float], baseline: Sequence[float]) -> tuple[Samples, Samples]:
    if len(candidate) != len(baseline):
        raise ValueError(f"samples are not paired: {len(candidate)} and {len(baseline)}")
    return np.asarray(candidate, dtype=np.float64), np.asarray(baseline, dtype=np.float64)


def _rounds(count: int) -> NDArray[np.int64]:
    """Which rounds each resample takes; the same for equal counts, so that a record can be recomputed."""
    return np.random.default_rng(count).integers(0, count, size=(RESAMPLES, count))


def _interval(value: float, resampled: Samples, confidence: float) -> ConfidenceInterval:
    tail = (1 - confidence) / 2
    low, high = np.quantile(resampled, (tail, 1 - tail))
    return ConfidenceInterval(value=value, low=float(low), high=float(high), confidence=confidence)
