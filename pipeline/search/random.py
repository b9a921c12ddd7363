"""Random search: valid points without replacement, in an order that the seed decides."""

import random
from collections.abc import Sequence

from pipeline.records.profiled import ProfileRecord
from pipeline.search.space import Point, Space
from pipeline.search.strategy import Budget, defaults_first, in_rounds


def propose(space: Space, history: Sequence[ProfileRecord], budget: Budget) -> list[Point]:  # noqa: ARG001
    """The defaults, then a shuffle of the rest; the rounds take consecutive pieces of it."""
    defaults, others = defaults_first(space.points(), space)
    random.Random(budget.seed).shuffle(others)
    return in_rounds(defaults + others, budget)
