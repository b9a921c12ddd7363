"""The terms of the bound, and which of them decides."""

import pytest

from pipeline.performance.bound.geometry import Block, geometry
from pipeline.performance.bound.least import LeastWork, Rates, bandwidth_share, bound

RATES = Rates(bandwidth=1e12, arithmetic=1e13)
SLOW = Rates(bandwidth=1e12, arithmetic=1e13, latency=5e-7)
LIMITS = {"sm_count": 100, "warp_size": 32}


def test_the_roofline_without_a_launch() -> None:
    """The larger of bytes over bandwidth and operations over rate."""
    found = bound(LeastWork(flops=1e13, bytes=1e11), RATES)
    assert [term.name for term in found.terms] == ["memory", "compute"]
    assert (found.seconds, found.side) == (pytest.approx(1.0), "compute")
    assert bound(LeastWork(flops=1e12, bytes=1e12), RATES).longest.name == "memory"


def test_uneven_blocks_take_the_busiest_ones_time() -> None:
    """101 equal blocks on 100 multiprocessors: one has two, so the operations take 200/101 of the time."""
    launch = geometry(LIMITS, (101,), Block(threads=32))
    found = bound(LeastWork(flops=1e13, bytes=0.0), RATES, launch)
    assert found.longest.name == "spread"
    assert found.seconds == pytest.approx(200 / 101)
    assert found.gain_without("spread") == pytest.approx(200 / 101)
    assert found.gain_without("latency") is None


def test_empty_lanes_do_nothing() -> None:
    """Warps that are half empty need twice the time."""
    launch = geometry(LIMITS, (100,), Block(threads=16))
    assert bound(LeastWork(flops=1e13, bytes=0.0), RATES, launch).seconds == pytest.approx(2.0)


def test_loads_in_flight_limit_the_bandwidth() -> None:
    """Little's law: 100 kB in flight over 0.5 us are 0.2 TB/s, a fifth of what the memory has."""
    block = Block(threads=32, resident=1, bytes_in_flight=1000)
    launch = geometry(LIMITS, (100,), block)
    found = bound(LeastWork(flops=0.0, bytes=2e12, read=1e12), SLOW, launch)
    assert found.longest.name == "latency"
    assert found.seconds == pytest.approx(1e12 / 2e11)
    assert found.side == "memory"
    assert launch is not None
    assert bandwidth_share(SLOW, launch) == pytest.approx(0.2)


@pytest.mark.parametrize("missing", ["latency", "read", "in flight"])
def test_no_latency_term_without_its_facts(missing: str) -> None:
    """What no source gives is left out, and never replaced."""
    rates = RATES if missing == "latency" else SLOW
    work = LeastWork(flops=0.0, bytes=2e12, read=None if missing == "read" else 1e12)
    block = Block(threads=32, resident=1, bytes_in_flight=None if missing == "in flight" else 10)
    assert bound(work, rates, geometry(LIMITS, (100,), block)).of("latency") is None


def test_more_terms_never_lower_the_bound() -> None:
    """What is known of the launch can only raise it."""
    work = LeastWork(flops=1e12, bytes=1e11, read=5e10)
    for blocks in (1, 50, 99, 100, 101, 5000):
        for in_flight in (1, 1000, 10**7):
            launch = geometry(LIMITS, (blocks,), Block(threads=96, resident=2, bytes_in_flight=in_flight))
            assert bound(work, SLOW, launch).seconds >= bound(work, SLOW).seconds
