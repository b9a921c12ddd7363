"""Several processes: what they say together, on simulated samples, and when they are asked."""

import math

import numpy as np
import pytest

from pipeline.measure import statistics
from pipeline.measure.comparison.process_agreement import (
    FEWEST_BATCHES,
    NEAR,
    called,
    combined,
    detectable,
    of_one,
    wanted,
)
from pipeline.records.results.profiled import ConfidenceInterval
from tests.measure.problems import SETTINGS, settings
from tests.selection import slow_unless

TRIALS = 200


def ratio(value: float, low: float, high: float) -> ConfidenceInterval:
    """Of a speed-up."""
    return ConfidenceInterval(value=value, low=low, high=high, confidence=0.95)


def measured(
    generator: np.random.Generator, truth: float, between: float
) -> tuple[ConfidenceInterval, float]:
    """Speed-up and detectable effect of a pair of processes that differ by their places as well."""
    place = math.exp(between * generator.standard_normal())
    ours = np.exp(0.01 * generator.standard_normal(12)) / (truth * place)
    theirs = np.exp(0.01 * generator.standard_normal(12))
    return statistics.speedup(ours, theirs, 0.95), statistics.minimum_detectable(ours, theirs, 0.95)


def speedups(
    generator: np.random.Generator, truth: float, between: float, count: int
) -> list[ConfidenceInterval]:
    """Of so many processes."""
    return [measured(generator, truth, between)[0] for _ in range(count)]


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 9, 30])
@pytest.mark.parametrize("confidence", [0.6, 0.95, 0.999])
def test_students_quantile(degrees: int, confidence: float) -> None:
    """As scipy has it, which a machine that runs a bundle may lack."""
    from scipy import stats  # takes a second, which the collection of every worker would take

    expected = stats.t.ppf((1 + confidence) / 2, degrees)
    assert statistics.student(confidence, degrees) == pytest.approx(expected, rel=1e-9)


def test_one_process_is_told_as_it_is() -> None:
    """Nothing is known of others."""
    one = ratio(1.1, 1.05, 1.2)
    assert combined([one]) is one
    assert detectable([0.03], [one], settings(processes_at_most=3)) == 0.03


@pytest.mark.parametrize(
    ("several", "said"),
    [
        ([ratio(1.04, 1.02, 1.06)], "indistinguishable"),
        ([ratio(0.8, 0.75, 0.95)], "indistinguishable"),
        ([ratio(1.2, 1.15, 1.3)], "faster"),
        ([ratio(0.8, 0.75, 0.85)], "slower"),
        ([ratio(1.04, 1.03, 1.05)] * 3, "faster"),
        ([ratio(1.04, 1.03, 1.05), ratio(1.0, 0.99, 1.01), ratio(0.97, 0.96, 0.98)], "indistinguishable"),
    ],
)
def test_one_process_calls_no_small_difference(several: list[ConfidenceInterval], said: str) -> None:
    """Where it lies may be all of it; three of them know."""
    assert called(several) == said


def test_what_one_process_can_detect() -> None:
    """Where there is one in any case: nothing below what places may make."""
    least = statistics.minimum_detectable([1.0] * 8, [2.0] * 8, 0.95)
    assert detectable([least], [ratio(2, 2, 2)], SETTINGS) == pytest.approx(NEAR)


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, pytest.param(5, marks=pytest.mark.slow)])
def test_places_are_in_the_interval(count: int) -> None:
    """95 % intervals hold the truth where processes differ by 4 %; those of one process hold it seldom."""
    generator = np.random.default_rng(count)
    several = [speedups(generator, 1.0, 0.04, count) for _ in range(TRIALS)]
    held = sum(each.low <= 1 <= each.high for each in map(combined, several))
    alone = sum(each[0].low <= 1 <= each[0].high for each in several)
    assert 0.91 * TRIALS <= held <= 0.995 * TRIALS
    assert alone < 0.5 * TRIALS


def test_batches_still_count() -> None:
    """Processes that agree by chance do not make scattered batches precise."""
    wide = ratio(1.0, 0.8, 1.25)
    found = combined([wide] * 4)
    assert found.high == pytest.approx(math.exp(math.log(1.25) / 2))
    assert found.low == pytest.approx(1 / found.high)


@pytest.mark.parametrize("between", slow_unless((0.01).__eq__, [0.0, 0.01, 0.04]))
def test_equals_are_equal(between: float) -> None:
    """The rule of the preset `standard`: at most one in twenty comparisons of equals is called different."""
    generator = np.random.default_rng(7)
    chosen = settings(processes_at_least=1, processes_at_most=3)
    different = 0
    for _ in range(TRIALS):
        several = speedups(generator, 1.0, between, 1)
        several += speedups(generator, 1.0, between, wanted(several, chosen) - 1)
        different += called(several) != "indistinguishable"
    assert different <= 0.05 * TRIALS


@pytest.mark.slow
def test_a_small_slow_down_is_found() -> None:
    """Where places make half a per cent, five processes see 4 % in four of five cases, never otherwise."""
    generator = np.random.default_rng(5)
    found = [called(speedups(generator, 1 / 1.04, 0.005, 5)) for _ in range(TRIALS)]
    assert found.count("slower") > 0.8 * TRIALS
    assert "faster" not in found


@pytest.mark.slow
def test_what_is_detectable_is_detected() -> None:
    """A slow-down by the minimum detectable effect is called in about four of five measurements."""
    generator = np.random.default_rng(11)
    told = []
    for _ in range(50):
        pairs = [measured(generator, 1.0, 0.01) for _ in range(5)]
        told.append(
            detectable(
                [least for _, least in pairs], [each for each, _ in pairs], settings(processes_at_most=5)
            )
        )
    truth = 1 / (1 + float(np.mean(told)))
    found = [called(speedups(generator, truth, 0.01, 5)) for _ in range(TRIALS)]
    assert 0.65 * TRIALS < found.count("slower") < 0.95 * TRIALS


@pytest.mark.parametrize(
    ("found", "asked"),
    [
        ([ratio(1.04, 1.02, 1.06)], 3),  # small, and would be called faster
        ([ratio(0.96, 0.94, 0.98)], 3),
        ([ratio(1.3, 1.05, 1.5)], 3),  # may be small
        ([ratio(1.0, 0.9, 1.1)], 1),  # nothing is claimed
        ([ratio(2.0, 1.9, 2.1)], 1),  # no place makes a factor of two
        ([ratio(0.5, 0.45, 0.55)], 1),
        ([ratio(2.0, 1.9, 2.1), ratio(1.04, 1.02, 1.06)], 3),  # one of two baselines
        ([], 1),
    ],
)
def test_small_differences_ask_for_more(found: list[ConfidenceInterval], asked: int) -> None:
    """Only what may be an effect of places has to be seen again."""
    assert wanted(found, settings(processes_at_least=1, processes_at_most=3)) == asked


def test_a_share_of_the_budget() -> None:
    """Processes that there are in any case share it; those that are asked for after that have one each."""
    assert of_one(settings(processes_at_most=3)) == settings(processes_at_most=3)
    chosen = settings(
        processes_at_least=4, processes_at_most=4, batches_at_least=30, batches_at_most=300,
        seconds_per_variant=4.0, relative_half_width=0.01,
    )  # fmt: skip
    share = of_one(chosen)
    assert (share.batches_at_least, share.batches_at_most, share.seconds_per_variant) == (8, 75, 1.0)
    assert share.relative_half_width == 0.02
    few = of_one(settings(processes_at_least=5, processes_at_most=5))
    assert few.batches_at_least == few.batches_at_most == FEWEST_BATCHES


def test_numbers_of_processes_are_checked() -> None:
    """At least one, and at most not below at least."""
    with pytest.raises(ValueError, match="processes_at_most: got 2, expected at least processes_at_least"):
        settings(processes_at_least=3, processes_at_most=2).__post_init__()
    with pytest.raises(ValueError, match="that at least 1"):
        settings(processes_at_least=0).__post_init__()
    assert SETTINGS.processes_at_least == 1
