"""The geometric mean of ratios: measured ratios of many problems in, their mean and its interval out.

The interval is one over problems: what another set of problems of the same kind might have given.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from pipeline.records.results.profiled import ConfidenceInterval

CONFIDENCE = 0.95
RESAMPLES = 2000
Logarithms = list[tuple[float, float, float]]
"""Of the ratios of one problem: value, and standard error below and above it."""


def logarithm(ratio: ConfidenceInterval) -> tuple[float, float, float]:
    """Of a ratio: its logarithm, and the standard errors below and above it."""
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    low, value, high = map(math.log, (ratio.low, ratio.value, ratio.high))
    return value, max(value - low, 0.0) / z, max(high - value, 0.0) / z


def geometric_mean(problems: Sequence[Logarithms]) -> ConfidenceInterval:
    """Of the problems' own geometric means.

    The interval is a percentile bootstrap over problems (Efron and Tibshirani 1993, chapter 13), in which
    each ratio also scatters as its measurement does.
    """
    values = np.array([math.fsum(value for value, *_ in each) / len(each) for each in problems])
    below = np.array([math.hypot(*(error for _, error, _ in each)) / len(each) for each in problems])
    above = np.array([math.hypot(*(error for *_, error in each)) / len(each) for each in problems])
    resampled = np.exp(_resample(values, below, above))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled, (tail, 1 - tail))
    return ConfidenceInterval(
        value=math.exp(float(values.mean())), low=float(low), high=float(high), confidence=CONFIDENCE
    )


def _resample(
    values: NDArray[np.float64], below: NDArray[np.float64], above: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Means of resamples; the same for equal input, so that a score can be recomputed."""
    count = len(values)
    random = np.random.default_rng(count)
    chosen = random.integers(0, count, size=(RESAMPLES, count))
    noise = random.standard_normal((RESAMPLES, count))
    scattered = values[chosen] + np.where(noise < 0.0, below[chosen], above[chosen]) * noise
    means: NDArray[np.float64] = scattered.mean(axis=1)
    return means
