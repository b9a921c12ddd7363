"""Shares of the roofline, and what lies above it."""

import msgspec
import pytest

from pipeline.measure.ceilings.roofline_share import WorkPerCall, place
from pipeline.records.results.profiled import Ceilings

CEILINGS = Ceilings(copy_bandwidth=20e9, cache_bandwidth=100e9, matrix_flops=200e9, vector_flops=50e9)


def work(flops: float, unit: str = "vector") -> WorkPerCall:
    """A call that moves one gigabyte."""
    return WorkPerCall(flops=flops, read=0.75e9, written=0.25e9, unit=unit, dtype="float32")  # type: ignore[arg-type]


def test_memory_bound() -> None:
    """Few operations: bytes over the bandwidth of the level that holds the data, 10 ms here."""
    here = place(work(1e6), CEILINGS, 0.02)
    assert here.bound == "memory"
    assert here.share == pytest.approx(0.5)


def test_compute_bound() -> None:
    """Many operations: operations over the peak of their unit, 40 ms and 10 ms here."""
    assert place(work(2e9), CEILINGS, 0.08).share == pytest.approx(0.5)
    assert place(work(2e9), CEILINGS, 0.08).bound == "compute"
    assert place(work(8e9, "matrix"), CEILINGS, 0.08).share == pytest.approx(0.5)


def test_a_slow_library_is_no_ceiling() -> None:
    """Where the library has no kernel for a dtype, the vector unit bounds the product."""
    slow = Ceilings(copy_bandwidth=20e9, cache_bandwidth=100e9, matrix_flops=3e9, vector_flops=50e9)
    assert slow.peak("matrix") == 50e9


def test_close_to_the_launch_latency() -> None:
    """A call of which a launch takes half is bounded by that, unless the work itself takes longer."""
    ceilings = msgspec.structs.replace(CEILINGS, launch_seconds=0.011)
    here = place(work(1e6), ceilings, 0.02)
    assert here.bound == "latency"
    assert here.share == pytest.approx(0.5)
    assert place(work(1e6), ceilings, 0.03).bound == "memory"
    shorter = msgspec.structs.replace(CEILINGS, launch_seconds=0.009)
    assert place(work(1e6), shorter, 0.012).bound == "memory"
