"""One concrete candidate of a task: source plus tunable values."""

from pipeline.records.kernel import TunableValue
from pipeline.records.record import Record, digest
from pipeline.records.search import Stop


class Variant(Record, frozen=True, kw_only=True):
    """Content-addressed: `id` follows from everything else."""

    kernel: str
    implementation: str
    backend: str
    source_digest: str
    """Of the source file and of every local file that it includes or imports."""
    attributes: dict[str, TunableValue]
    tunables: dict[str, TunableValue]

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
    stop: Stop | None = None
    """Why the round proposes nothing."""
    remarks: tuple[str, ...] = ()
    """What the search has to say about the round, one sentence each."""
