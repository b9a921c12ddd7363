"""Random search: valid points without replacement, in an order that the seed decides."""

from collections.abc import Sequence

from pipeline.records.search.search_trial import Trial
from pipeline.search.spaces.lattice import RoundSpace
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.strategy import Budget, Strategy


def propose(space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
    """The defaults, then any points of the rest, each with equal probability."""
    round_space = RoundSpace(space, history, budget)
    return round_space.defaults_first(round_space.draw)


STRATEGY = Strategy(
    description="Valid points at random, without replacement.", propose=propose, may_be_wrapped=True
)
