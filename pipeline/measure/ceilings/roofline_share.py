"""How near to the device's ceilings a call came, and which of them bounds it.

Roofline model (Williams, Waterman and Patterson 2009): the call cannot take less than its bytes at the
bandwidth, nor than its operations at the peak rate.
"""

from typing import Literal

from pipeline.records.record import Record
from pipeline.records.results.profiled import Bound, Ceilings

OVER = 1.1
"""Share above which a result is not believed: the ceilings themselves are known to some per cents."""


CLOSE = 0.5
"""Share of a call that a call which does nothing takes, from which on it is what bounds the call: nothing
that is done inside could make it twice as fast."""


class Place(Record, frozen=True, kw_only=True):
    """Where a call lies under the roofline."""

    share: float
    """Roofline time over measured time: 1 is the ceiling."""
    bound: Bound


class WorkPerCall(Record, frozen=True, kw_only=True):
    """What one call has to do, by the kernel's formulas."""

    flops: float
    read: float
    """Bytes that it must read,"""
    written: float
    """and write."""
    unit: Literal["matrix", "vector"]
    dtype: str
    tensor_bytes: float | None = None
    """Bytes of its inputs and outputs as declared; the formula may count more or less."""

    @property
    def bytes(self) -> float:
        """Compulsory traffic."""
        return self.read + self.written


def place(work: WorkPerCall, ceilings: Ceilings, seconds: float) -> Place:
    """Share of the roofline of a call that took so many seconds, and which ceiling is the nearest.

    The launch latency is none of the roofline's: a call that comes close to it may be as good as can be and
    have a small share.
    """
    memory, compute = memory_seconds(work, ceilings), compute_seconds(work, ceilings)
    bound: Bound = "memory" if memory >= compute else "compute"
    launch = ceilings.launch_seconds or 0.0
    if launch > max(memory, compute) and launch >= CLOSE * seconds:
        bound = "latency"
    return Place(share=max(memory, compute) / seconds, bound=bound)


def memory_seconds(work: WorkPerCall, ceilings: Ceilings) -> float:
    """Least time for the bytes, from the level that holds them."""
    return work.bytes / ceilings.cache_bandwidth


def compute_seconds(work: WorkPerCall, ceilings: Ceilings) -> float:
    """Least time for the operations."""
    return work.flops / peak(work, ceilings)


def peak(work: WorkPerCall, ceilings: Ceilings) -> float:
    """FLOP/s that bound the work.

    A library's product is no upper bound where there is no matrix unit, or no kernel for the dtype: the
    vector unit can do a product as well.
    """
    if work.unit == "vector":
        return ceilings.vector_flops
    return max(ceilings.matrix_flops, ceilings.vector_flops)
