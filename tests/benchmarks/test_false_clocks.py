"""The page of false clocks has a row for each, in words; a false clock is as false as its name says."""

import time
from collections import Counter
from collections.abc import Callable

import pytest
import torch

from tests.benchmarks import clocks
from tests.benchmarks.false_clocks import page

pytestmark = pytest.mark.alone


def test_the_page() -> None:
    """Settings, call, clock, and how often what was said."""
    found = {
        ("profile=server", "brief", "late_25"): Counter(tampered=3, faster=1),
        ("profile=standard", "long", "true"): Counter(indistinguishable=4),
    }
    text = "\n".join(page(found, 4, "Measured here."))
    assert "`python -m tests.benchmarks.false_clocks --repeats 4`. Measured here." in text
    assert "| `profile=server` | brief | 25 % slow after gaps | 3 | 0 | 1 | 0 | 0 |" in text
    assert "| `profile=standard` | long | true | 0 | 0 | 0 | 4 | 0 |" in text


@pytest.mark.parametrize(
    ("name", "share"), [("long_true", 1.0), ("long_slow_50", 0.5), ("long_slow_10", 0.9)]
)
def test_false_as_it_says(name: str, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the operating system's clock."""
    monkeypatch.setattr(time, "perf_counter_ns", time.perf_counter_ns)  # put back afterwards
    getattr(clocks, name)(torch.ones(4, 4))
    assert _told(lambda: time.sleep(0.2)) == pytest.approx(share, abs=0.02)


def test_false_after_gaps_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of a call after a gap is left out, nothing of one right behind it."""
    monkeypatch.setattr(time, "perf_counter_ns", time.perf_counter_ns)
    x = torch.ones(256, 256)
    clocks.long_late_25(x)
    for gap, share in ((0.01, 0.75), (0.0, 1.0)):
        time.sleep(gap) if gap else None
        assert _told(lambda: clocks.long_late_25(x)) == pytest.approx(share, abs=0.05)


def _told(action: Callable[[], object]) -> float:
    """Share of its time that Python's clock shows."""
    ours, theirs = time.perf_counter_ns(), time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    action()
    passed = time.perf_counter_ns() - ours
    return passed / (time.clock_gettime_ns(time.CLOCK_MONOTONIC) - theirs)
