"""Transfer: the winners of another device, shape or dtype first, then a search that continues from them.

The plan reads the winners (`Budget.starts`). A winner that is not a valid point of this space is replaced by
the nearest valid point.
"""

from collections.abc import Sequence

from pipeline.records.configuration.search_settings import Search
from pipeline.records.record import Record, at_least
from pipeline.records.search.search_trial import Trial
from pipeline.search.spaces.lattice import RoundSpace
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.strategy import Budget, SearchInputs, Strategy, Winners, settings_of
from pipeline.search.strategy_registry import proposer


class Transfer(Record, frozen=True, kw_only=True):
    """Settings of the transfer from other tasks."""

    winners: str | None = None
    """Winners of other devices, shapes or dtypes: path of a `winners.csv`, or a pattern with `*`."""
    at_most: int = 8
    """Maximum number of winners to try, those of the most similar task first."""
    search: str = "surrogate"
    """Strategy that continues from the winners."""

    def __post_init__(self) -> None:
        """Raise ValueError for no winners at all."""
        at_least(self, at_most=1)


def propose(space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
    """The winners in the first round, then what the wrapped strategy proposes."""
    settings = budget.settings(Transfer, "transfer")
    if not history:
        round_space = RoundSpace(space, history, budget)
        return round_space.defaults_first(lambda count: _starts(round_space, count, settings))
    return proposer(settings.search)(space, history, budget)


def _starts(round_space: RoundSpace, count: int, settings: Transfer) -> list[Point]:
    points: list[Point] = []
    for name, tunables in round_space.budget.starts[: min(settings.at_most, count)]:
        if name in round_space.lattices:
            lattice = round_space.lattices[name]
            vector = lattice.nearest(
                lattice.closest(tunables), round_space.taken[name], round_space.generator
            )
            if vector is not None:
                points.append(round_space.take(name, vector))
    return points + round_space.draw(count - len(points)) if len(points) < count else points


def remarks(history: Sequence[Trial], budget: Budget) -> tuple[str, ...]:
    """How many winners the search starts from."""
    if history:
        return ()
    settings = budget.settings(Transfer, "transfer")
    count = min(len(budget.starts), settings.at_most)
    where = f" in {settings.winners}" if settings.winners else ""
    plural = "" if count == 1 else "s"
    return (f"transfer: {count} winner{plural} of other tasks{where} to begin with",)


def wrapped(search: Search) -> str:
    """The strategy that continues from the winners."""
    return settings_of(search, Transfer, "transfer").search


def inputs(search: Search) -> SearchInputs:
    """The winners."""
    settings = settings_of(search, Transfer, "transfer")
    return SearchInputs(winners=Winners(path=settings.winners, at_most=settings.at_most))


STRATEGY = Strategy(
    description="Winners of other devices, shapes or dtypes first, then a search that continues from them.",
    propose=propose,
    settings=Transfer,
    wraps=wrapped,
    inputs=inputs,
    remarks=remarks,
)
