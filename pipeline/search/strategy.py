"""The interface of a search strategy: one module with one function, `propose`."""

from collections.abc import Sequence
from typing import Protocol

from pipeline.records.profiled import ProfileRecord
from pipeline.records.record import Record
from pipeline.search.space import Point, Space


class Budget(Record, frozen=True, kw_only=True):
    """How much may be proposed, and where in the search we are."""

    round: int
    """Counted from 0."""
    rounds: int
    variants: int | None
    """Per round; None: all that the space holds, in the first round."""
    seed: int


class Strategy(Protocol):
    """Proposes the points of one round; deterministic in its arguments, no point twice over all rounds."""

    def __call__(self, space: Space, history: Sequence[ProfileRecord], budget: Budget) -> list[Point]:
        """Valid points of the space; `history` holds what the earlier rounds measured."""
        ...


def in_rounds(ordered: Sequence[Point], budget: Budget) -> list[Point]:
    """This round's share of points that were brought into an order of preference."""
    if budget.variants is None:
        return list(ordered) if budget.round == 0 else []
    start = budget.round * budget.variants
    return list(ordered[start : start + budget.variants])


def defaults_first(points: Sequence[Point], space: Space) -> tuple[list[Point], list[Point]]:
    """The defaults that are valid, and all other points: the default shows what tuning gained."""
    defaults = [point for point in space.defaults() if point in points]
    return defaults, [point for point in points if point not in defaults]
