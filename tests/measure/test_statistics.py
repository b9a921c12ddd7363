"""Intervals, verdicts and drift on simulated samples, whose truth is known."""

import numpy as np
import pytest

from pipeline.measure import statistics
from pipeline.measure.statistics import RESOLUTION, verdict
from pipeline.records.results.profiled import ConfidenceInterval

TRIALS = 200


def noise(generator: np.random.Generator, count: int) -> np.ndarray:
    """Times as they are measured: some per cents of scatter, and now and then a batch that was disturbed."""
    times = np.exp(0.02 * generator.standard_normal(count))
    times[generator.random(count) < 0.15] *= 1.5
    return times


def verdicts(ratio: float, count: int) -> list[str]:
    """Verdicts on a candidate that is `ratio` times as slow as its baseline."""
    generator = np.random.default_rng(7)
    return [
        verdict(statistics.speedup(ratio * noise(generator, count), noise(generator, count), 0.95))
        for _ in range(TRIALS)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("count", [8, 16, 40])
def test_false_positives(count: int) -> None:
    """Of comparisons of equals, at most one in twenty is called different."""
    called = [each for each in verdicts(1.0, count) if each != "indistinguishable"]
    assert len(called) <= 0.05 * TRIALS


def test_a_slow_down_of_three_per_cent_is_found() -> None:
    """With batches enough, a difference beyond the resolution is called by its name, and never the other."""
    found = verdicts(1.04, 60)
    assert found.count("slower") > 0.8 * TRIALS
    assert "faster" not in found


@pytest.mark.parametrize("count", [8, 24])
def test_coverage_of_the_median(count: int) -> None:
    """An interval of 95 % holds the true median in about 95 % of the trials."""
    generator = np.random.default_rng(3)
    intervals = [
        statistics.median(np.exp(0.05 * generator.standard_normal(count)), 0.95) for _ in range(TRIALS)
    ]
    held = sum(interval.low <= 1.0 <= interval.high for interval in intervals)
    assert 0.91 * TRIALS <= held <= 0.995 * TRIALS


def test_what_disturbs_both_cancels() -> None:
    """Paired by round: a machine that slows down for some rounds widens neither side's ratio much."""
    generator = np.random.default_rng(5)
    common = np.where(np.arange(24) % 2, 1.0, 2.0)  # every other round twice as slow
    candidate = common * np.exp(0.002 * generator.standard_normal(24))
    baseline = 1.2 * common * np.exp(0.002 * generator.standard_normal(24))
    paired = statistics.speedup(candidate, baseline, 0.95)
    unpaired = statistics.speedup(candidate, generator.permutation(baseline), 0.95)
    assert statistics.relative_half_width(paired) < 0.3 * statistics.relative_half_width(unpaired)
    assert verdict(paired) == "faster"


def test_unpaired_samples_are_refused() -> None:
    """Samples of different rounds cannot be compared."""
    with pytest.raises(ValueError, match="not paired: 3 and 2"):
        statistics.speedup([1.0, 1.0, 1.0], [1.0, 1.0], 0.95)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.02, 1.10, "faster"),
        (0.90, 0.98, "slower"),
        (1.005, 1.10, "indistinguishable"),  # within the resolution
        (0.995, 1.005, "indistinguishable"),
        (0.90, 1.10, "indistinguishable"),
    ],
)
def test_verdict_follows_the_interval(low: float, high: float, expected: str) -> None:
    """The interval decides, beyond what two equal processes differ by."""
    assert verdict(ConfidenceInterval(value=1.0, low=low, high=high, confidence=0.95)) == expected


def test_intervals_can_be_recomputed() -> None:
    """Equal samples give equal intervals: a record can be checked from its samples."""
    samples = noise(np.random.default_rng(1), 20)
    assert statistics.median(samples, 0.95) == statistics.median(samples, 0.95)


def test_drift() -> None:
    """A trend is told with its size, scatter is not a trend."""
    generator = np.random.default_rng(2)
    scatter = np.exp(0.01 * generator.standard_normal(30))
    assert statistics.drift(scatter) is None
    assert statistics.drift(scatter * np.linspace(1.0, 1.2, 30)) == pytest.approx(0.1, abs=0.03)
    assert statistics.drift(scatter[:4]) is None


@pytest.mark.slow
def test_what_is_detectable_is_detected() -> None:
    """A slow-down by the minimum detectable effect is called in about four of five comparisons."""
    generator = np.random.default_rng(11)
    count = 40
    least = float(
        np.median(
            [
                statistics.minimum_detectable(noise(generator, count), noise(generator, count), 0.95)
                for _ in range(50)
            ]
        )
    )
    assert 0.015 < least < 0.06
    found = verdicts(1 + least, count).count("slower")
    assert 0.65 * TRIALS < found < 0.95 * TRIALS


def test_nothing_scatters() -> None:
    """Samples without any scatter leave the resolution."""
    found = statistics.minimum_detectable([1.0] * 8, [2.0] * 8, 0.95)
    assert found == pytest.approx(RESOLUTION)
