"""How well searches did. In: what each found, in order. Out: curves of the best so far, scores.

The score is the mean, over the whole budget, of the share of the way from random search to the optimum that
the best variant so far has gone: 0 is random search, 1 the optimum found at once, below 0 worse than random.
After Willemsen and others, "A Methodology for Comparing Auto-Tuning Optimization Algorithms", 2024,
doi:10.1016/j.future.2024.05.021. Theirs takes the mean of the repeats; here it is their median, which one
lucky repeat does not move.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

CONFIDENCE = 0.95
RESAMPLES = 1000
RANDOM_SEARCHES = 2000  # simulated, for the budget in seconds


class Curves(NamedTuple):
    """Best seconds per call so far; infinite before anything passed."""

    axis: np.ndarray
    """Evaluations, or seconds of recorded cost."""
    repeats: np.ndarray
    """One row for each repeat."""

    def quantile(self, share: float) -> np.ndarray:
        """Over the repeats; one of them, for between a number and infinity there is no middle."""
        return np.quantile(self.repeats, share, axis=0, method="inverted_cdf")


class Score(NamedTuple):
    """With its bootstrap interval over the repeats."""

    value: float
    low: float
    high: float


def by_evaluations(found: Sequence[Sequence[float]], budget: int) -> Curves:
    """After each evaluation; a search that ended early keeps what it had."""
    rows = np.full((len(found), budget), np.inf)
    for row, values in zip(rows, found, strict=True):
        row[: len(values)] = values[:budget]
    return Curves(np.arange(1, budget + 1), np.minimum.accumulate(rows, axis=1))


def by_cost(found: Sequence[Sequence[float]], costs: Sequence[Sequence[float]], axis: np.ndarray) -> Curves:
    """At moments: what is found counts once the cost of finding it is paid."""
    rows = np.full((len(found), len(axis)), np.inf)
    for row, values, cost in zip(rows, found, costs, strict=True):
        if len(values):
            best = np.minimum.accumulate(values)
            done = np.searchsorted(np.cumsum(cost), axis, side="right")
            row[done > 0] = best[done[done > 0] - 1]
    return Curves(axis, rows)


def random_by_evaluations(seconds: np.ndarray, budget: int, share: float = 0.5) -> np.ndarray:
    """Quantile of the best of k configurations drawn without replacement, k = 1 … budget: exact.

    The best is the m-th best of all, or better, unless all k draws are from the rest:
    1 - C(N - m, k) / C(N, k).
    """
    ordered = np.sort(seconds)
    total = len(ordered)
    found = np.empty(budget)
    missed = np.zeros(total + 1)  # m -> log probability that none of the best m was drawn
    for draws in range(1, budget + 1):
        rest = total - np.arange(total + 1) - (draws - 1)
        with np.errstate(divide="ignore"):
            missed = missed + np.log(np.maximum(rest, 0) / (total - draws + 1))
        found[draws - 1] = ordered[int(np.argmax(-np.expm1(missed) >= share - 1e-12)) - 1]
    return found


def random_by_cost(seconds: np.ndarray, cost: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Median of many simulated random searches."""
    generator = np.random.default_rng(0)
    count = min(len(cost), math.ceil(2 * axis[-1] / cost.mean()) + 20)
    drawn = [generator.choice(len(cost), size=count, replace=False) for _ in range(RANDOM_SEARCHES)]
    return by_cost([seconds[each] for each in drawn], [cost[each] for each in drawn], axis).quantile(0.5)


def score(curves: Curves, baseline: np.ndarray, optimum: float) -> Score:
    """The score of the median curve, and its interval."""
    generator = np.random.default_rng(0)
    count = len(curves.repeats)
    resampled = [
        _score(Curves(curves.axis, curves.repeats[generator.integers(0, count, count)]), baseline, optimum)
        for _ in range(RESAMPLES)
    ]
    low, high = np.quantile(resampled, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Score(_score(curves, baseline, optimum), float(low), float(high))


def _score(curves: Curves, baseline: np.ndarray, optimum: float) -> float:
    """Where random search has nothing yet, or the optimum already, there is nothing to compare.

    A search that has nothing where random search has something is no worse than twice its way from the
    optimum: one late start is not to decide everything.
    """
    median = curves.quantile(0.5)
    told = np.isfinite(baseline) & (baseline > optimum)
    way = baseline[told] - optimum
    return float(np.mean((baseline[told] - np.minimum(median[told], baseline[told] + way)) / way))
