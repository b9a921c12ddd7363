"""How near to the device's ceilings a call came, which of them bounds it, and what is too good to be true.

Roofline model (Williams, Waterman and Patterson 2009): the call cannot take less than its bytes at the
bandwidth, nor than its operations at the peak rate.
"""

from typing import Literal

from pipeline.records.profiled import Ceilings
from pipeline.records.record import Record

OVER = 1.1
"""Share above which a result is not believed: the ceilings themselves are known to some per cents."""


class Place(Record, frozen=True, kw_only=True):
    """Where a call lies under the roofline."""

    share: float
    """Roofline time over measured time: 1 is the ceiling."""
    bound: Literal["memory", "compute"]


class Work(Record, frozen=True, kw_only=True):
    """What one call has to do, by the kernel's formulas."""

    flops: float
    read: float
    """Bytes that it must read,"""
    written: float
    """and write."""
    unit: Literal["matrix", "vector"]
    dtype: str

    @property
    def bytes(self) -> float:
        """Compulsory traffic."""
        return self.read + self.written


def place(work: Work, ceilings: Ceilings, seconds: float) -> Place:
    """Share of the roofline of a call that took so many seconds."""
    memory = work.bytes / ceilings.cache_bandwidth
    compute = work.flops / peak(work, ceilings)
    bound: Literal["memory", "compute"] = "memory" if memory >= compute else "compute"
    return Place(share=max(memory, compute) / seconds, bound=bound)


def peak(work: Work, ceilings: Ceilings) -> float:
    """FLOP/s that bound the work.

    A library's product is no upper bound where there is no matrix unit, or no kernel for the dtype: the
    vector unit can do a product as well.
    """
    if work.unit == "vector":
        return ceilings.vector_flops
    return max(ceilings.matrix_flops, ceilings.vector_flops)


def too_good(work: Work, ceilings: Ceilings, seconds: float) -> str | None:
    """Why a result cannot be true, with what may be wrong; None for one that can."""
    here = place(work, ceilings, seconds)
    if here.share <= OVER:
        return None
    if here.bound == "memory":
        limit = ceilings.cache_bandwidth
        done = f"{work.bytes / seconds / 1e9:.4g} GB/s where the device reaches {limit / 1e9:.4g}"
        causes = "work left out, data kept in registers or caches between calls, or a wrong `cost.bytes`"
    else:
        limit = peak(work, ceilings)
        done = f"{work.flops / seconds / 1e9:.4g} GFLOP/s where the device reaches {limit / 1e9:.4g}"
        causes = "work left out, an algorithm with fewer operations, or a wrong `cost.flops`"
    return f"{here.share:.2f} of the roofline: {done}; {causes}"
