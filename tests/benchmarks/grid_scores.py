"""Searches against a grid. In: speeds side by side, the grid's times. Out: shares of its best, chances."""

import math
from collections.abc import Sequence
from typing import Literal

from pipeline.performance.submission_scores import proportion
from pipeline.records.record import Record
from pipeline.records.results.profiled import ConfidenceInterval

WANTED = 0.95
"""Share of the grid's best speed that a search should reach."""
PART = 4
"""A search may measure one variant in so many of the grid's."""

Verdict = Literal["reached", "missed", "undecided"]


class Score(Record, frozen=True, kw_only=True):
    """Of several searches."""

    searches: int
    reached: int
    """Speed of the winner, as measured side by side with the grid's best: at least 95 % of it."""
    certain: int
    """Of these, those whose whole interval is above."""
    median: float
    """Share of the grid's best that the middle search reached; the lower one of two in the middle."""
    worst: float
    low: float
    """Interval of the share of searches that reach it (Wilson 1927), 95 %."""
    high: float


def allowed(measured: int) -> int:
    """How many variants a search may measure."""
    return measured // PART


def verdict(share: ConfidenceInterval) -> Verdict:
    """Whether 95 % were reached, where the interval says so."""
    if share.low >= WANTED:
        return "reached"
    return "missed" if share.high < WANTED else "undecided"


def score(shares: Sequence[ConfidenceInterval | None]) -> Score:
    """Of the searches' winners; None: a search without one.

    Raises
    ------
    ValueError
        There were no searches.
    """
    if not shares:
        raise ValueError("expected at least one search, got none")
    values = sorted(0.0 if each is None else each.value for each in shares)
    reached = sum(value >= WANTED for value in values)
    low, high = proportion(reached, len(values))
    return Score(
        searches=len(values),
        reached=reached,
        certain=sum(each is not None and verdict(each) == "reached" for each in shares),
        median=values[(len(values) - 1) // 2],
        worst=values[0],
        low=low,
        high=high,
    )


def good(seconds: Sequence[float], share: float = WANTED) -> int:
    """How many variants of a grid have at least this share of its best speed, the best one included."""
    best = min(seconds)
    return sum(best / each >= share for each in seconds)


def chance(among: int, total: int, drawn: int) -> float:
    """Probability that so many draws without replacement hold one of the good ones: what needs no search."""
    return 1.0 - math.comb(total - among, drawn) / math.comb(total, drawn)


def needed(found: Sequence[float | None], best: float, share: float = WANTED) -> int | None:
    """Measurements until a search held this share of the best speed; None: it never did."""
    for count, seconds in enumerate(found, start=1):
        if seconds is not None and best / seconds >= share:
            return count
    return None
