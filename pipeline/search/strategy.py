"""The interface of a search strategy: one module with one `Strategy` value called `STRATEGY`.

A strategy that tunes has `propose`, one that writes sources has `write`.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.configuration.search_settings import Search
from pipeline.records.errors import ConfigError, StoreError
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

SHORTEST = 64
"""No dimension becomes shorter than this: a block would be larger than the whole dimension."""


def settings_of(search: Search | None, kind: type[Settings], name: str) -> Settings:
    """Settings of the strategy `name`; its defaults if the search has none.

    Raises
    ------
    ConfigError
        They do not fit the schema, or a setting without a default is missing.
    """
    given = search.settings.get(name, {}) if search is not None else {}
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"search.{name}: {error}") from error


class Budget(Record, frozen=True, kw_only=True):
    """How many points may be proposed, in which round, and the strategy's settings."""

    round: int
    """Counted from 0."""
    rounds: int
    variants: int | None
    """Maximum of this round; None: the whole space, in the first round."""
    variants_per_round: int | None = None
    """Maximum of every round, before the total budget is used up."""
    seed: int
    search: Search | None = None
    """The search that is run; None: the defaults of every strategy."""
    starts: tuple[Point, ...] = ()
    """Winners of other tasks, the most similar task first."""

    @property
    def total(self) -> int | None:
        """Points of all rounds together; None: the whole space."""
        whole = None if self.variants_per_round is None else self.variants_per_round * self.rounds
        limit = self.search.variants if self.search is not None else None
        return min((each for each in (whole, limit) if each is not None), default=None)

    def settings(self, kind: type[Settings], name: str) -> Settings:
        """Settings of the strategy `name`; its defaults if the search has none."""
        return settings_of(self.search, kind, name)


class Propose(Protocol):
    """Proposes the points of one round; deterministic in its arguments, no point twice over all rounds.

    It keeps no state between rounds and learns from `history` alone. Only a strategy with a `fidelity`
    proposes a point again, to measure it more fully.
    """

    def __call__(self, space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
        """Valid points of the space; `history` holds all variants of earlier rounds, failed ones too."""
        ...


class WriterContext(Record, frozen=True, kw_only=True):
    """What a strategy that writes sources has access to: declared sources, and those of earlier rounds."""

    spec: GenerateSpec
    repository: str
    store: str
    attempts: tuple[tuple[Attempt, ...], ...] = ()
    """Attempts of a language model by round, from round 0 on."""
    records: tuple[SourceRecord, ...] = ()
    """Who wrote the sources of the earlier rounds, and from which variants."""

    def declared(self, implementation: str) -> str:
        """Text of an implementation's declared source.

        Raises
        ------
        StoreError
            The file is gone since the plan was made.
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
        self, space: Space, history: Sequence[Trial], budget: Budget, writer: WriterContext
    ) -> list[Proposal | Unfit]:
        """Points with sources; what was proposed before need not be proposed again."""
        ...


Diagnose = Callable[[Sequence[Trial], Sequence[Path], GenerateSpec], Sequence[Trial]]
"""Trials, the files they were read from, the task -> the trials with their diagnosis."""
Remarks = Callable[[Sequence[Trial], Budget], tuple[str, ...]]


class Fidelity(Record, frozen=True, kw_only=True):
    """How fully a round measures its variants."""

    share: float = 1.0
    """Share of the timed seconds and batches."""
    shrink: dict[str, int] = {}
    """Dimension of the problem -> factor by which it is shorter than the workload's."""

    def dimensions(self, workload: dict[str, int]) -> dict[str, int]:
        """The dimensions that the round measures on."""
        return {name: shorter(size, self.shrink.get(name, 1)) for name, size in workload.items()}


def shorter(size: int, times: int) -> int:
    """A dimension that many times shorter, rounded up to the part of 64 that divides it, and at least 64.

    A multiple of a block or of a vector stays one, and a size that is none stays none.
    """
    part = math.gcd(size, SHORTEST)
    return min(size, max(SHORTEST, -(-size // (times * part)) * part))


class Winners(Record, frozen=True, kw_only=True):
    """Winners of other tasks to start from."""

    path: str | None
    """Path of a `winners.csv`, or a pattern with `*`."""
    at_most: int


class BriefRequest(Record, frozen=True, kw_only=True):
    """What a writer of sources has to know about the kernel and the device, beyond what every brief holds."""

    exemplars: int = 0
    """Maximum number of kernels of the same category."""
    start: str | None = None
    """A source of the repository to start from; None: the kernel's own."""


class SearchInputs(Record, frozen=True, kw_only=True):
    """What a search reads besides the space; a change of it makes a new plan.

    The plan reads these files; its messages name the strategy's settings `folder`, `winners` and `start`.
    """

    folder: str | None = None
    """A folder of sources, relative to the repository."""
    winners: Winners | None = None
    reference: bool = False
    """The kernel's reference, in order to compile it."""
    brief: BriefRequest | None = None
    """None: a brief only if the strategy reads diagnoses and the kernel has cost formulas."""


class Strategy(Record, frozen=True, kw_only=True):
    """Everything that the pipeline knows about a strategy."""

    description: str
    """One sentence for the reference."""
    propose: Propose | None = None
    write: Write | None = None
    """Instead of `propose`: it proposes sources."""
    settings: type[Record] | None = None
    """Schema of its settings, which are under its name in the yaml."""
    problems: Callable[[Search], Iterable[str]] | None = None
    """What is wrong with a search, for example too few rounds: lines that start with the key."""
    wraps: Callable[[Search], str] | None = None
    """Name of the strategy that proposes points for it."""
    may_be_wrapped: bool = False
    """Whether it may propose points for another strategy; its settings then need defaults."""
    inputs: Callable[[Search], SearchInputs] | None = None
    """What it reads besides the space."""
    fidelity: Callable[[Search, int], Fidelity] | None = None
    """How fully a round measures; None: every round measures fully."""
    ablates: bool = False
    """Its last round switches off one technique at a time: the report compares with the best before it."""
    remarks: Remarks | None = None
    """What it reports about a round in addition to its points."""
    diagnose: Diagnose | None = None
    """For strategies that read what limits the variants in the history: adds the diagnosis to the trials."""
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
    """The points of earlier rounds."""
    return {identity(trial.point) for trial in history}


def defaults_first(points: Sequence[Point], space: Space) -> tuple[list[Point], list[Point]]:
    """The defaults that are valid, and all other points: the default shows what tuning gained."""
    defaults = [point for point in space.defaults() if point in points]
    return defaults, [point for point in points if point not in defaults]
