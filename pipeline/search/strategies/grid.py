"""Grid search: every valid point, or an even spread of as many as the budget allows."""

from collections.abc import Sequence

from pipeline.records.search.search_trial import Trial
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.strategy import Budget, Strategy, defaults_first, in_rounds


def propose(space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
    """The defaults, then points at equal steps through the grid."""
    points = space.points()
    total = budget.total
    if total is None or total >= len(points):
        return in_rounds(points, history, budget)
    defaults, others = defaults_first(points, space)
    wanted = max(total - len(defaults), 0)
    spread = [others[number * len(others) // wanted] for number in range(wanted)]
    # Round r takes every rounds-th point from the r-th on, so that each round spans the whole grid.
    turns = [point for turn in range(budget.rounds) for point in spread[turn :: budget.rounds]]
    return in_rounds(defaults + turns, history, budget)


STRATEGY = Strategy(
    description="Every valid point, or an even spread of as many as the budget allows.",
    propose=propose,
    may_be_wrapped=True,
)
