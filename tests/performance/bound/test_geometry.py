"""How launches spread over a device."""

import pytest

from pipeline.performance.bound.geometry import Block, Geometry, geometry

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
