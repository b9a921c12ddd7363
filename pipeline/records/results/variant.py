"""One concrete candidate of a task: source plus tunable values."""

from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.configuration.pruning import Scale
from pipeline.records.configuration.search_settings import Stop
from pipeline.records.record import Record, digest
from pipeline.records.search.model_attempt import Attempt
from pipeline.records.search.written_source import SourceRecord, Unfit


class Variant(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Content-addressed: `id` follows from everything else (what is as usual is left out of it)."""

    kernel: str
    implementation: str
    backend: str
    source_digest: str
    """Of the source file and of every local file that it includes or imports."""
    attributes: dict[str, TunableValue]
    tunables: dict[str, TunableValue]
    written: bool = False
    """Whether a search wrote the source: it is in the store, not in the repository, and is not trusted."""

    @property
    def id(self) -> str:
        """Identity, derived from the whole record."""
        return digest(self)


class Pruned(Record, frozen=True, kw_only=True):
    """How many points of an implementation's space a constraint excludes, and why."""

    implementation: str
    rule: str
    reason: str
    count: int | None
    """None where the space is too large to enumerate what was left out."""


class Generated(Record, frozen=True, kw_only=True):
    """What generate writes for one round of one task."""

    key: str
    round: int
    variants: tuple[Variant, ...]
    pruned: tuple[Pruned, ...]
    space: dict[str, int]
    """Implementation -> number of points before the constraints."""
    records: tuple[SourceRecord, ...] = ()
    """The sources that this round's variants bring along, each in a store entry of its own."""
    unfit: tuple[Unfit, ...] = ()
    """Texts that were proposed and cannot be a variant."""
    attempts: tuple[Attempt, ...] = ()
    """Attempts of a language model in this round."""
    stop: Stop | None = None
    """Why the round proposes nothing."""
    remarks: tuple[str, ...] = ()
    """What the search has to say about the round, one sentence each."""
    scale: Scale | None = None
    """What earlier rounds measured, where the search prunes by the analytic bound."""
