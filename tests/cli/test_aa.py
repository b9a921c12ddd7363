"""A/A: a kernel against itself, what is counted as a false alarm, and what cannot be measured."""

import json
from pathlib import Path

import msgspec
import pytest

from pipeline.cli.main import main
from pipeline.execution import aa_test as aa
from pipeline.records.results.profiled import Comparison, ConfidenceInterval, Timing, Verdict
from tests.end_to_end.checkout import Checkout


def interval(value: float) -> ConfidenceInterval:
    """Of one per cent on either side."""
    return ConfidenceInterval(value=value, low=value - 0.01, high=value + 0.01, confidence=0.95)


def comparison(verdict: Verdict) -> Comparison:
    """One that ended so."""
    timing = Timing(
        samples=(1e-3,) * 8,
        median=interval(1.0),
        calls_per_batch=4,
        setup_seconds=0.1,
        first_call_seconds=0.1,
    )
    return Comparison(
        baseline="other", timing=timing, speedup=interval(1.0), verdict=verdict, minimum_detectable=0.02
    )


def row(said: list[Verdict], failures: dict[str, int] | None = None) -> aa.Row:
    """Comparisons of one variant."""
    return aa.Row(
        kernel="softmax",
        workload="small",
        implementation="cpp",
        comparisons=tuple(map(comparison, said)),
        failures=failures or {},
    )


def test_false_alarms_with_their_interval() -> None:
    """Both wrong verdicts count, with the interval of their share."""
    said: list[Verdict] = ["indistinguishable"] * 196 + ["faster"] * 3 + ["slower"]
    lines = list(aa.table([row(said)]))
    assert lines[2] == "| softmax | small | cpp | 200 | 3 | 1 | 2.0% | 0.8% to 5.0% |"
    assert lines[-3] == "Median of the minimum detectable effect: 2.0%."
    assert lines[-2].startswith("0 of 200 were made in several processes")


def test_an_advantage_of_who_starts_first() -> None:
    """Told by a sign test: as many ratios on either side as a coin gives, or more."""
    assert list(aa.table([row(["indistinguishable"] * 9)]))[-1] == (
        "Time of the process that starts first over the other's: median 1.0000, 4 of 9 above 1, 2 to 7 for a "
        "fair coin (95 %): it shows no advantage."
    )
    ahead = [
        msgspec.structs.replace(comparison("indistinguishable"), speedup=interval(1.002)) for _ in range(9)
    ]
    biased = msgspec.structs.replace(row([]), comparisons=tuple(ahead))
    assert list(aa.table([biased]))[-1].endswith(
        "9 of 9 above 1, 2 to 7 for a fair coin (95 %): that is more than chance."
    )


def test_a_fair_coin() -> None:
    """Bounds of the binomial distribution."""
    assert [aa.fair_coin(tosses) for tosses in (1, 5, 6, 9, 200)] == [
        (0, 1),
        (0, 5),
        (1, 5),
        (2, 7),
        (86, 114),
    ]


def test_what_was_not_measured_is_told() -> None:
    """Comparisons that ended otherwise are neither alarms nor silence."""
    lines = list(aa.table([row(["indistinguishable"], {"unstable_timing": 2})]))
    assert "softmax (cpp): 2 comparisons ended as unstable_timing." in lines


def test_nothing_at_all() -> None:
    """No share of nothing."""
    assert list(aa.table([row([])]))[2].endswith("| 0 | 0 | 0 | – | – |")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A private copy of the project."""
    return Checkout(tmp_path / "project")


@pytest.mark.slow
def test_no_device(
    capsys: pytest.CaptureFixture[str], checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line where the plan holds nothing that could be timed here."""
    monkeypatch.chdir(checkout.folder)
    assert main(["aa", "kernel=softmax", "workload=awkward", "hardware=mi300x"]) == 1
    assert "nothing can be measured" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.alone
def test_as_a_user_runs_it(checkout: Checkout) -> None:
    """Compile, verify, compare; the samples are there to be looked at."""
    out = checkout.folder / "aa.json"
    overrides = "kernel=softmax workload=awkward hardware=cpu optimization=baseline verify=fast profile=quick"
    printed = checkout.module("pipeline", "aa", *overrides.split(), "--comparisons", "2", "--out", str(out))
    assert "| softmax | awkward | cpp | 2 |" in printed
    (found,) = json.loads(out.read_text())
    assert len(found["comparisons"]) == 2
    assert found["comparisons"][0]["timing"]["samples"]
