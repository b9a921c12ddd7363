"""The interface of a search strategy: one module with one `Strategy` value called `STRATEGY`.

A strategy that tunes has `propose`, one that writes sources has `write`.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.configuration.search_settings import Search
from pipeline.records.errors import StoreError
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.record import Record
from pipeline.records.results.variant import Variant
from pipeline.records.search.model_attempt import Attempt
from pipeline.records.search.search_trial import Trial
from pipeline.records.search.written_source import Proposal, SourceRecord, Unfit
from pipeline.search.spaces.search_space import Point, Space
from pipeline.store.stored_sources import written_text

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
        if isinstance(given, kind):
            return given
        own = self.search.settings.get(name, {}) if self.search is not None else {}
        return msgspec.convert(own, kind)


class Propose(Protocol):
    """Proposes the points of one round; deterministic in its arguments, no point twice over all rounds.

    It keeps nothing between rounds: all it may learn from is `history`. Only a strategy that screens proposes
    a point again, to have it measured longer.
    """

    def __call__(self, space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
        """Valid points of the space; `history` holds all variants of earlier rounds, failed ones too."""
        ...


class Workshop(Record, frozen=True, kw_only=True):
    """What a strategy that writes sources works with: the declared sources, and those of earlier rounds."""

    spec: GenerateSpec
    repository: str
    store: str
    attempts: tuple[tuple[Attempt, ...], ...] = ()
    """Of a language model, round by round from the first one on."""
    records: tuple[SourceRecord, ...] = ()
    """Who wrote the sources of the earlier rounds, and from which variants."""

    def declared(self, implementation: str) -> str:
        """Text of an implementation's declared source.

        Raises
        ------
        StoreError
            It is gone, though the plan saw it.
        """
        path = Path(self.repository, self.spec.implementations[implementation].source)
        try:
            return path.read_bytes().decode()
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"{path}: cannot be read: {error}") from error

    def text(self, variant: Variant) -> str:
        """Text of a variant's source, declared or written.

        Raises
        ------
        StoreError
            The store lost it.
        """
        if variant.written:
            return written_text(variant, Path(self.store))
        return self.declared(variant.implementation)


class Write(Protocol):
    """Proposes the sources of one round; deterministic in its arguments and in the files that it names."""

    def __call__(
        self, space: Space, history: Sequence[Trial], budget: Budget, workshop: Workshop
    ) -> list[Proposal | Unfit]:
        """Points with sources; what was proposed before need not be proposed again."""
        ...


Diagnose = Callable[[Sequence[Trial], Sequence[Path], GenerateSpec], Sequence[Trial]]
"""Trials, the files that they were read from, and the task -> the trials with their diagnosis."""
Remarks = Callable[[Sequence[Trial], Budget], tuple[str, ...]]


class Strategy(Record, frozen=True, kw_only=True):
    """All that the pipeline needs to know of a strategy."""

    description: str
    """One sentence for the reference."""
    propose: Propose | None = None
    write: Write | None = None
    """Instead of `propose`: it proposes sources."""
    settings: type[Record] | None = None
    """Schema of its own settings, which stand under its name in the yaml; all have defaults."""
    wraps: Callable[[Search], str] | None = None
    """Name of the strategy that it has search for it."""
    may_be_wrapped: bool = False
    """Whether another strategy may have this one search for it."""
    remarks: Remarks | None = None
    """What it reports about a round in addition to its points."""
    diagnose: Diagnose | None = None
    """If it reads what limits the variants of its history: how that is found out."""
    libraries: tuple[str, ...] = ()
    """Distributions whose versions its proposals depend on."""


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
