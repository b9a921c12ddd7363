"""Searches end when a budget is spent or nothing improves any more, and say which."""

import msgspec
import pytest

from pipeline.records.configuration.search_settings import Convergence, Search
from pipeline.records.search.search_trial import Trial
from pipeline.search.stopping_rules import left, stop
from tests.search.synthetic import SPACE, easy, fails, trial

SEARCH = Search(name="", description="", strategy="random", rounds=8, variants_per_round=5)
POINTS = SPACE.points()


def history(seconds: list[float], each: int = 5) -> list[Trial]:
    """Rounds whose best takes so long."""
    return [
        trial(POINTS[number * each + place], lambda _, best=best, place=place: best + place, number)
        for number, best in enumerate(seconds)
        for place in range(each)
    ]


def reason(search: Search, trials: list[Trial], number: int) -> str | None:
    """Why it ends before that round."""
    found = stop(search, trials, number)
    return found.reason if found else None


def test_nothing_ends_without_a_budget() -> None:
    """Rounds alone bound it."""
    assert stop(SEARCH, history([1.0, 1.0, 1.0]), 3) is None
    assert left(SEARCH, history([1.0])) == 5


def test_variants() -> None:
    """The last round gets what is left; then it is spent, failures included."""
    search = msgspec.structs.replace(SEARCH, variants=12)
    assert left(search, history([1.0, 1.0])) == 2
    assert stop(search, history([1.0, 1.0]), 2) is None
    spent = history([1.0, 1.0]) + [trial(point, fails, 2) for point in POINTS[10:12]]
    assert reason(search, spent, 3) == "the budget of 12 variants is spent"
    assert left(search, spent) == 0


def test_seconds() -> None:
    """What evaluating took adds up: one second for each trial here."""
    search = msgspec.structs.replace(SEARCH, seconds=9.5)
    assert stop(search, history([1.0]), 1) is None
    assert reason(search, history([1.0, 1.0]), 2) == ("the budget of 9.5 s is spent: the variants took 10 s")


def test_joules() -> None:
    """What the counter saw adds up; where there is no counter, the budget cannot be kept and says so."""
    search = msgspec.structs.replace(SEARCH, joules=30.0)
    assert reason(search, history([1.0]), 1) == (
        "a budget of 30 J cannot be kept: no energy was measured (see profile.energy_seconds)"
    )
    counted = [msgspec.structs.replace(each, spent_joules=5.0) for each in history([1.0])]
    assert stop(search, counted, 1) is None
    more = [msgspec.structs.replace(each, spent_joules=5.0) for each in history([1.0, 1.0])]
    assert reason(search, more, 2) == "the budget of 30 J is spent: the measurements took 50 J"
    nothing = [trial(point, fails, 0) for point in POINTS[:5]]
    assert stop(search, nothing, 1) is None


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([1.0, 0.9, 0.8, 0.7], None),
        ([1.0, 0.5, 0.5, 0.5], "converged: 0 % gained in the last 2 rounds (convergence.percent: 1)"),
        ([1.0, 0.5, 0.497, 0.6], "converged: 0.6 % gained in the last 2 rounds (convergence.percent: 1)"),
        ([1.0, 0.5, 0.6], None),
    ],
)
def test_convergence(times: list[float], expected: str | None) -> None:
    """The best must have fallen by more than the percentage within so many rounds."""
    search = msgspec.structs.replace(SEARCH, convergence=Convergence(percent=1.0, rounds=2))
    assert reason(search, history(times), len(times)) == expected


def test_no_convergence_before_anything_passed() -> None:
    """A search that found nothing yet goes on."""
    search = msgspec.structs.replace(SEARCH, convergence=Convergence(percent=1.0, rounds=1))
    assert stop(search, [trial(point, fails, number) for number in range(3) for point in POINTS], 3) is None
    assert stop(search, [trial(POINTS[0], easy, 0)], 1) is None
