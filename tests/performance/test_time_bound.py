"""Lower bounds of a call's time: the launch's geometry, and the terms of the bound."""

import pytest

from pipeline.performance.time_bound import (
    Block,
    Geometry,
    LeastWork,
    Rates,
    bandwidth_share,
    bound,
    geometry,
)

LIMITS = {"sm_count": 132, "warp_size": 32}


def launch(
    blocks: int, resident: int | None = 1, threads: int = 128, in_flight: int | None = None
) -> Geometry:
    """A launch on 132 multiprocessors."""
    found = geometry(LIMITS, (blocks,), Block(threads=threads, resident=resident, bytes_in_flight=in_flight))
    assert found is not None
    return found


def test_a_full_device() -> None:
    """As many blocks as places: one wave, nothing idle."""
    full = launch(132)
    assert (full.waves, full.last_wave, full.wave_efficiency, full.balance) == (1, 1.0, 1.0, 1.0)


def test_one_block_too_many() -> None:
    """133 blocks on 132 multiprocessors: a second wave that is 1 % full, half of all places empty."""
    one_more = launch(133)
    assert one_more.waves == 2
    assert one_more.last_wave == pytest.approx(1 / 132)
    assert one_more.wave_efficiency == pytest.approx(133 / 264)
    assert one_more.balance == pytest.approx(133 / 264)


def test_resident_blocks_widen_the_wave_but_not_the_balance() -> None:
    """With two places on each, 133 blocks run at once; one multiprocessor still has twice the work."""
    wide = launch(133, resident=2)
    assert wide.waves == 1
    assert wide.wave_efficiency == pytest.approx(133 / 264)
    assert wide.balance == pytest.approx(133 / 264)


def test_lanes() -> None:
    """16 threads fill half a warp, 48 three quarters of two."""
    assert launch(1, threads=16).lanes == 0.5
    assert launch(1, threads=48).lanes == 0.75
    assert launch(1, threads=128).lanes == 1.0


def test_bytes_in_flight_are_those_of_the_blocks_that_reside() -> None:
    """No more blocks than there are, no more than fit."""
    assert launch(10, in_flight=100).bytes_in_flight == 1000
    assert launch(1000, in_flight=100).bytes_in_flight == 13200


def test_what_is_not_known_is_absent() -> None:
    """No residency, no waves; no grid or count of multiprocessors, no launch."""
    unknown = launch(500, resident=None, in_flight=100)
    assert (unknown.wave, unknown.waves, unknown.last_wave, unknown.wave_efficiency) == (None,) * 4
    assert unknown.bytes_in_flight is None
    assert unknown.balance == pytest.approx(500 / 528)
    assert geometry(LIMITS, None, Block(threads=128)) is None
    assert geometry({"warp_size": 32}, (4,), Block(threads=128)) is None
    assert geometry(LIMITS, (0, 4), Block(threads=128)) is None


RATES = Rates(bandwidth=1e12, arithmetic=1e13)
SLOW = Rates(bandwidth=1e12, arithmetic=1e13, latency=5e-7)
SM_LIMITS = {"sm_count": 100, "warp_size": 32}


def test_the_roofline_without_a_launch() -> None:
    """The larger of bytes over bandwidth and operations over rate."""
    found = bound(LeastWork(flops=1e13, bytes=1e11), RATES)
    assert [term.name for term in found.terms] == ["memory", "compute"]
    assert (found.seconds, found.side) == (pytest.approx(1.0), "compute")
    assert bound(LeastWork(flops=1e12, bytes=1e12), RATES).longest.name == "memory"


def test_uneven_blocks_take_the_busiest_ones_time() -> None:
    """101 equal blocks on 100 multiprocessors: one has two, so the operations take 200/101 of the time."""
    launch = geometry(SM_LIMITS, (101,), Block(threads=32))
    found = bound(LeastWork(flops=1e13, bytes=0.0), RATES, launch)
    assert found.longest.name == "spread"
    assert found.seconds == pytest.approx(200 / 101)
    assert found.gain_without("spread") == pytest.approx(200 / 101)
    assert found.gain_without("latency") is None


def test_empty_lanes_do_nothing() -> None:
    """Warps that are half empty need twice the time."""
    launch = geometry(SM_LIMITS, (100,), Block(threads=16))
    assert bound(LeastWork(flops=1e13, bytes=0.0), RATES, launch).seconds == pytest.approx(2.0)


def test_loads_in_flight_limit_the_bandwidth() -> None:
    """Little's law: 100 kB in flight over 0.5 us are 0.2 TB/s, a fifth of what the memory has."""
    block = Block(threads=32, resident=1, bytes_in_flight=1000)
    launch = geometry(SM_LIMITS, (100,), block)
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
    assert bound(work, rates, geometry(SM_LIMITS, (100,), block)).of("latency") is None


def test_more_terms_never_lower_the_bound() -> None:
    """What is known of the launch can only raise it."""
    work = LeastWork(flops=1e12, bytes=1e11, read=5e10)
    for blocks in (1, 50, 99, 100, 101, 5000):
        for in_flight in (1, 1000, 10**7):
            launch = geometry(SM_LIMITS, (blocks,), Block(threads=96, resident=2, bytes_in_flight=in_flight))
            assert bound(work, SLOW, launch).seconds >= bound(work, SLOW).seconds
