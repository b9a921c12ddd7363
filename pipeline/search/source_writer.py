"""The interface of a strategy that writes sources: one module with one function, `propose`.

It gets what every strategy gets, and the `Workshop`: the declared sources, and those of earlier rounds.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from pipeline.records.errors import StoreError
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.record import Record
from pipeline.records.results.variant import Variant
from pipeline.records.search.model_attempt import Attempt
from pipeline.records.search.search_trial import Trial
from pipeline.records.search.written_source import Proposal, SourceRecord, Unfit
from pipeline.search.spaces.search_space import Space
from pipeline.search.strategy import Budget
from pipeline.store.stored_sources import written_text


class Workshop(Record, frozen=True, kw_only=True):
    """What is written from."""

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


class Writer(Protocol):
    """Proposes the sources of one round; deterministic in its arguments and in the files that it names."""

    def __call__(
        self, space: Space, history: Sequence[Trial], budget: Budget, workshop: Workshop
    ) -> list[Proposal | Unfit]:
        """Points with sources; what was proposed before need not be proposed again."""
        ...
