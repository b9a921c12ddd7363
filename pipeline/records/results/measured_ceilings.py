"""What a device reaches, measured on it: the ceilings that one problem's results are held against."""

from pipeline.records.record import Record


class LevelCeiling(Record, frozen=True, kw_only=True):
    """What one level of the device's memory reaches."""

    name: str
    """`L1`, `L2`, `L3`, `DRAM`."""
    capacity: int | None
    """Bytes; None for the last level."""
    bandwidth: float
    """Bytes per second of a copy (read + write) whose data lie in it."""


class Ceilings(Record, frozen=True, kw_only=True):
    """Measured on the device in use, in the same job."""

    copy_bandwidth: float
    """Bytes per second (read + write), array far larger than the last-level cache."""
    read_bandwidth: float | None = None
    """Bytes per second of reading alone, same array: more than copying on many devices."""
    triad_bandwidth: float | None = None
    """Bytes per second of a[i] = b[i] + s * c[i], same array, three arrays counted."""
    level: str | None = None
    """The nearest level of memory that holds the problem's data."""
    levels: tuple[LevelCeiling, ...] = ()
    """From the nearest to the last; with flushed caches only the last."""
    cache_bandwidth: float
    """What bounds this problem: bytes per second at its working set (a cache's, where it fits one) and at its
    mix of reads and writes."""
    matrix_flops: float
    """FLOP/s of the vendor library's matrix product in the workload's dtype."""
    vector_flops: float
    """FLOP/s of dependent-free fused multiply-adds, float32, or in the workload's dtype where that is wider
    or where the unit is faster in it."""
    launch_seconds: float | None = None
    """Time of a call that does nothing, back to back."""
