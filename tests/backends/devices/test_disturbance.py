"""What else ran on the machine."""

import pytest

from pipeline.backends.devices.disturbance import CpuLoad, Disturbance, disturbance, load

pytestmark = pytest.mark.alone


def test_shares() -> None:
    """Two cores for one second, of which we used one and others half of one; a tenth was stolen."""
    before = CpuLoad(busy=100.0, stolen=5.0, total=1000.0)
    after = CpuLoad(busy=101.5, stolen=5.2, total=1002.0)
    found = disturbance(before, after, own_seconds=1.0)
    assert found is not None
    assert found.others == pytest.approx(0.25)
    assert found.stolen == pytest.approx(0.1)


def test_notes() -> None:
    """Only what counts is told."""
    assert Disturbance(others=0.05, stolen=0.0).notes() == ()
    assert Disturbance(others=0.25, stolen=0.2).notes() == (
        "disturbed: other processes used 25% of the machine's CPU time",
        "disturbed: the host took 20% of the machine's CPU time",
    )


def test_too_short_to_tell() -> None:
    """The kernel counts in ticks: a few of them tell nothing, and nothing is made up."""
    reading = CpuLoad(busy=1.0, stolen=0.0, total=2.0)
    assert disturbance(reading, reading, 0.0) is None
    assert disturbance(None, reading, 0.0) is None


def test_this_machine() -> None:
    """The counters grow."""
    before = load()
    sum(range(3_000_000))
    after = load()
    if before is None or after is None:
        pytest.skip("no /proc/stat")
    assert after.total > before.total
    assert after.busy >= before.busy
