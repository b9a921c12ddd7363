"""Transfer: the winners of another device, shape or dtype first, then a search that goes on from them.

What was won elsewhere is in the budget (`Budget.starts`): the plan read it. A winner whose values this space
does not have, or whose rules exclude it, gives way to the nearest point.
"""

from collections.abc import Sequence

from pipeline.records.configuration.search_settings import Transfer
from pipeline.records.search.search_trial import Trial
from pipeline.search.spaces.lattice import Field
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.strategy import Budget, Strategy
from pipeline.search.strategy_registry import proposer


def propose(space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
    """Winners that were not tried yet; after the last of them, what the search proposes."""
    settings = budget.settings(Transfer, "transfer")
    if not history:
        field = Field(space, history, budget)
        return field.defaults_first(lambda count: _starts(field, count, settings))
    return proposer(settings.search)(space, history, budget)


def _starts(field: Field, count: int, settings: Transfer) -> list[Point]:
    points: list[Point] = []
    for name, tunables in field.budget.starts[: min(settings.at_most, count)]:
        if name in field.lattices:
            lattice = field.lattices[name]
            vector = lattice.nearest(lattice.closest(tunables), field.taken[name], field.generator)
            if vector is not None:
                points.append(field.take(name, vector))
    return points + field.draw(count - len(points)) if len(points) < count else points


def remarks(history: Sequence[Trial], budget: Budget) -> tuple[str, ...]:
    """How many winners there were to begin with."""
    if history:
        return ()
    settings = budget.settings(Transfer, "transfer")
    count = min(len(budget.starts), settings.at_most)
    where = f" in {settings.winners}" if settings.winners else ""
    plural = "" if count == 1 else "s"
    return (f"transfer: {count} winner{plural} of other tasks{where} to begin with",)


STRATEGY = Strategy(
    description="Winners of other devices, shapes or dtypes first, then a search that continues from them.",
    propose=propose,
    wraps=lambda search: (search.transfer or Transfer()).search,
    remarks=remarks,
)
