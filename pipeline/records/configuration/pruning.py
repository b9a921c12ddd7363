"""What is not worth measuring: the rules of a search, and what the analytic bound is held against."""

from pipeline.records.configuration.hardware import Quantity
from pipeline.records.record import Record, at_least, share


class Prune(Record, frozen=True, kw_only=True):
    """Rules that drop variants before they are verified, by facts of their binaries."""

    spills_at_most: int | None = None
    """Maximum spilled bytes per thread."""
    occupancy_at_least: float | None = None
    """Minimum share of the resident warps (an estimate)."""
    local_memory_at_most: int | None = None
    """Maximum local memory in bytes per thread; on a CPU the largest stack frame."""
    bound_over_best_at_most: float | None = None
    """Maximum bound of a variant (an estimate) as a multiple of the best measured time: above 1 it cannot be
    the best."""
    bound_over_least_at_most: float | None = None
    """Maximum bound of a variant as a multiple of the smallest bound in the round (both are estimates)."""
    measured_anyway: float = 0.2
    """Share of the dropped variants that is measured anyway, so that the report shows the loss."""

    def __post_init__(self) -> None:
        """Raise ValueError for a share that is none, a size below none, a multiple that drops everything."""
        share(self, "measured_anyway", "occupancy_at_least")
        at_least(self, spills_at_most=0, local_memory_at_most=0, bound_over_least_at_most=1)
        best = self.bound_over_best_at_most
        if best is not None and best <= 0:
            raise ValueError(f"bound_over_best_at_most: expected more than 0, got {best:g}")

    @property
    def by_bound(self) -> bool:
        """Whether the analytic bound is one of its grounds."""
        return self.bound_over_best_at_most is not None or self.bound_over_least_at_most is not None


class Reach(Record, frozen=True, kw_only=True):
    """What the device reached when its ceilings were measured, for one problem."""

    bandwidth: float
    """Bytes per second at the problem's working set."""
    vector_flops: float
    """FLOP/s, as the next."""
    matrix_flops: float


class Scale(Record, frozen=True, kw_only=True):
    """What earlier rounds measured: the bounds of a round's variants are held against it."""

    seconds: float | None = None
    """Per call of the fastest variant; None where none was measured fully."""
    reach: Reach | None = None
    """None where no ceilings were measured."""


class PruningReasons(Record, frozen=True, kw_only=True):
    """What the rules of a search say of the variants of a round."""

    unwanted: dict[str, str]
    """Variant -> why it is not worth measuring."""
    undecided: dict[str, str]
    """Variant -> why a rule cannot decide about it."""
    measured_anyway: frozenset[str] = frozenset()
    """Variants that are verified and measured whatever the rules say, to show what pruning loses."""


class Bounded(Record, frozen=True, kw_only=True):
    """What the bounds of a task's variants are computed from, in addition to their binaries."""

    flops: float | None
    """Of one call, as the next two; absent where the kernel has no formula."""
    bytes: float | None
    read: float | None
    unit: str
    """`matrix` or `vector`: which peak bounds it."""
    dtype: str
    peaks: dict[str, Quantity]
    """Declared by the target."""
