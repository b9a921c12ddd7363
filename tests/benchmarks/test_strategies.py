"""How searches are scored: what random search would find, what the share of the way to the optimum is."""

import itertools
import json
import math
import time
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from pipeline.interop.formats.format_registry import read_recorded
from pipeline.records.outcome import Outcome
from pipeline.records.search.recorded_space import RecordedResult, RecordedSpace
from pipeline.search.simulated_search import Recording
from tests.benchmarks.curves_svg import Line, Panel, colours_of, picture, ticks
from tests.benchmarks.processor_limit import Spent, processor_limit
from tests.benchmarks.strategies import settings
from tests.benchmarks.strategy_runs import _cache, our_runs, table_of
from tests.benchmarks.strategy_scores import (
    by_cost,
    by_evaluations,
    random_by_cost,
    random_by_evaluations,
    score,
)

SECONDS = np.array([4.0, 1.0, math.inf, 3.0, 2.0, 8.0])
SPACE = RecordedSpace(
    source="toy.json",
    format="T4",
    kernel="toy",
    device="Some GPU",
    problem=(64,),
    tunables={"block": (32, 64, 128), "unroll": (1, 2)},
    results=tuple(
        RecordedResult(
            tunables={"block": block, "unroll": unroll},
            outcome=Outcome.PASSED,
            samples=(0.001 * block / unroll,),
            median_seconds=0.001 * block / unroll,
            compile_seconds=2.0,
            benchmark_seconds=1.0,
        )
        if block < 128
        else RecordedResult(
            tunables={"block": block, "unroll": unroll},
            outcome=Outcome.LAUNCH_ERROR,
            reason="RuntimeFailedConfig",
            compile_seconds=2.0,
        )
        for block in (32, 64, 128)
        for unroll in (1, 2)
    ),
)


def test_the_median_of_random_search_is_exact() -> None:
    """The same as over every order in which the configurations can be drawn."""
    bests = [np.minimum.accumulate(order) for order in itertools.permutations(SECONDS)]
    brute = np.quantile(np.array(bests), 0.5, axis=0, method="inverted_cdf")
    assert random_by_evaluations(SECONDS, 6).tolist() == brute.tolist()


def test_random_search_by_cost() -> None:
    """Where every configuration costs the same, the budget in seconds is the one in evaluations."""
    found = random_by_cost(SECONDS, np.full(6, 2.0), np.array([1.0, 2.0, 12.0]))
    assert found[0] == math.inf and found[1] == pytest.approx(3.0, abs=1.01) and found[2] == 1.0


def test_the_scores_of_known_searches() -> None:
    """0 for random search itself, 1 for the optimum at once, below 0 for what is worse than random."""
    baseline = random_by_evaluations(SECONDS, 4)
    as_random = by_evaluations([list(baseline)] * 3, 4)
    assert score(as_random, baseline, 1.0).value == 0.0
    at_once = score(by_evaluations([[1.0]] * 3, 4), baseline, 1.0)
    assert (at_once.value, at_once.low, at_once.high) == (1.0, 1.0, 1.0)
    worse = score(by_evaluations([[8.0, 8.0, 8.0, 8.0]] * 3, 4), baseline, 1.0)
    assert -1.0 <= worse.value < 0.0
    nothing = score(by_evaluations([[math.inf] * 4] * 3, 4), baseline, 1.0)
    assert nothing.value == -1.0


def test_the_median_decides_and_not_one_lucky_repeat() -> None:
    """The interval tells that the repeats differ."""
    baseline = random_by_evaluations(SECONDS, 4)
    mixed = score(by_evaluations([[4.0]] * 3 + [[1.0]] * 2, 4), baseline, 1.0)
    assert mixed.value == score(by_evaluations([[4.0]] * 5, 4), baseline, 1.0).value
    assert mixed.high > mixed.value


def test_what_is_found_counts_when_its_cost_is_paid() -> None:
    """Not before, and a failure costs as well."""
    curves = by_cost([[math.inf, 3.0, 2.0]], [[1.0, 1.0, 5.0]], np.array([0.5, 1.0, 2.0, 6.9, 7.0]))
    assert curves.repeats.tolist() == [[math.inf, math.inf, 3.0, 3.0, 2.0]]


def test_our_searches_on_a_small_space() -> None:
    """Each evaluation with what it found and cost; the default comes first, all points are tried."""
    (run,) = our_runs(Recording(SPACE), settings("random", 16), seeds=[3], limit=60)
    assert run.found[0] == 0.032 and len(run.found) == 6
    assert sorted(run.cost) == [2.0, 2.0, 3.0, 3.0, 3.0, 3.0]
    assert run.values.count(math.inf) == 2
    assert table_of(SPACE).optimum == 0.016


def test_kernel_tuner_gets_the_same_table(tmp_path: Path) -> None:
    """The cache file that is made for it says what the space says."""
    path = tmp_path / "cache.json"
    path.write_text(json.dumps(_cache(SPACE)))
    read = read_recorded(path)
    assert [each.median_seconds for each in read.results] == pytest.approx(
        [each.median_seconds for each in SPACE.results]
    )
    assert [each.outcome for each in read.results] == [each.outcome for each in SPACE.results]
    assert (read.kernel, read.problem, read.tunables) == ("toy", (64,), SPACE.tunables)


def test_a_ladder_has_rounds_for_the_whole_budget() -> None:
    """Its rungs measure fewer and fewer points."""
    assert (settings("random", 200)["rounds"], settings("successive_halving", 200)["rounds"]) == (25, 75)


def test_what_thinks_too_long_ends() -> None:
    """By processor time; afterwards nothing is interrupted any more. What had ended is kept."""
    with pytest.raises(Spent), processor_limit(0.05):
        while True:
            pass
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    assert our_runs(Recording(SPACE), settings("random", 16), seeds=range(10**6), limit=0.3)


@pytest.mark.parametrize("top", [1.0123, 1.02, 1.9, 3.0, 12.0, 1.00007])
def test_ticks_are_told_apart(top: float) -> None:
    """No two of the same text, however narrow the axis; each stands where its text says."""
    found = ticks(top)
    assert 4 <= len(found) <= 8
    assert len({label for _, label in found}) == len(found)
    for value, label in found:
        assert 1 <= value <= top + 1e-9
        assert float(label.removesuffix(" %")) == pytest.approx(100 * (value - 1), abs=1e-9)


def test_the_picture_is_whole() -> None:
    """It parses, and has a line for each strategy; what lies above the panel stays on its edge."""
    lines = [
        Line("random search", np.array([math.inf, 3.0, 1.5])),
        Line("a & b", np.array([2.0, 1.5, 1.0]), low=np.ones(3), high=np.full(3, 2.0), dashed=True),
    ]
    text = picture([Panel("A100", lines, top=2.0)], colours_of([line.name for line in lines]), "evaluations")
    root = ElementTree.fromstring(text)
    assert len(root.findall("{http://www.w3.org/2000/svg}polyline")) == 2
    assert "nan" not in text and "inf" not in text and "a &amp; b" in text
