"""The interface of a search strategy: one module with one function, `propose`."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.configuration.search_settings import Search
from pipeline.records.record import Record
from pipeline.records.search.search_trial import Trial
from pipeline.search.spaces.search_space import Point, Space

Settings = TypeVar("Settings", bound=Record)
Identity = tuple[str, tuple[tuple[str, TunableValue], ...]]


class Budget(Record, frozen=True, kw_only=True):
    """How much may be proposed, where in the search we are, and the strategy's settings."""

    round: int
    """Counted from 0."""
    rounds: int
    variants: int | None
    """Of this round at most; None: all that the space holds, in the first round."""
    variants_per_round: int | None = None
    """Of every round, before the whole budget comes to its end."""
    seed: int
    search: Search | None = None
    """The whole of the search's settings; None: every strategy's own defaults."""
    starts: tuple[Point, ...] = ()
    """Winners of other tasks, the most similar task first."""

    @property
    def total(self) -> int | None:
        """Points of all rounds together; None: all that the space holds."""
        whole = None if self.variants_per_round is None else self.variants_per_round * self.rounds
        limit = self.search.variants if self.search is not None else None
        return min((each for each in (whole, limit) if each is not None), default=None)

    def settings(self, kind: type[Settings], name: str) -> Settings:
        """Settings of a strategy, its defaults where none are given."""
        given = getattr(self.search, name, None)
        return given if isinstance(given, kind) else kind()


class Strategy(Protocol):
    """Proposes the points of one round; deterministic in its arguments, no point twice over all rounds.

    It keeps nothing between rounds: all it may learn from is `history`. Only a strategy that screens proposes
    a point again, to have it measured longer.
    """

    def __call__(self, space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
        """Valid points of the space; `history` holds all variants of earlier rounds, failed ones too."""
        ...


def in_rounds(ordered: Iterable[Point], history: Sequence[Trial], budget: Budget) -> list[Point]:
    """This round's share of points that were brought into an order of preference."""
    if budget.variants is None and budget.round > 0:
        return []
    taken = proposed(history)
    fresh = (point for point in ordered if identity(point) not in taken)
    return list(itertools.islice(fresh, budget.variants))


def identity(point: Point) -> Identity:
    """A point as something that a set can hold."""
    implementation, tunables = point
    return implementation, tuple(sorted(tunables.items()))


def proposed(history: Sequence[Trial]) -> set[Identity]:
    """Points of earlier rounds."""
    return {identity(trial.point) for trial in history}


def defaults_first(points: Sequence[Point], space: Space) -> tuple[list[Point], list[Point]]:
    """The defaults that are valid, and all other points: the default shows what tuning gained."""
    defaults = [point for point in space.defaults() if point in points]
    return defaults, [point for point in points if point not in defaults]
