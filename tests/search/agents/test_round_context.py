"""Which attempts are extended: the best, several, or a tree; never what cheats."""

import pytest

from pipeline.records.outcome import Outcome
from pipeline.records.search.search_trial import Trial
from pipeline.search.agents.round_context import best_of, choose
from tests.search.agents.making import agent, children, trial

FAST, MIDDLE, SLOW = trial("fast", 10.0), trial("middle", 20.0), trial("slow", 40.0)
WRONG = trial("wrong", outcome=Outcome.WRONG_VALUE, stage="verify")
BROKEN = trial("broken", outcome=Outcome.COMPILE_ERROR, stage="compile")
CHEAT = trial("cheat", outcome=Outcome.TAMPERED, stage="verify")
TOO_FAST = trial("too fast", outcome=Outcome.OVER_ROOFLINE)


def names(trials: list[Trial]) -> list[str]:
    """Their sources."""
    return [each.variant.source_digest for each in trials]


def test_best_of_n_extends_the_fastest() -> None:
    """All attempts of a round."""
    assert names(choose(agent(), [SLOW, WRONG, FAST, CHEAT], {}, 3)) == ["fast"] * 3


def test_a_beam_shares_among_the_best() -> None:
    """In turns; failures come after what passed."""
    wide = agent(choosing="beam", width=3)
    assert names(choose(wide, [SLOW, WRONG, FAST], {}, 4)) == ["fast", "slow", "wrong", "fast"]


@pytest.mark.parametrize("way", ["best_of_n", "beam", "tree"])
def test_cheats_are_never_extended(way: str) -> None:
    """Neither what tampered nor what was faster than the device can be, even where nothing else is there."""
    settings = agent(choosing=way, width=9)
    chosen = choose(settings, [CHEAT, TOO_FAST, BROKEN, SLOW], {}, 9)
    assert set(names(chosen)) <= {"slow", "broken"}
    assert choose(settings, [CHEAT, TOO_FAST], {}, 3) == []


def test_the_furthest_failure_is_mended_where_nothing_passed() -> None:
    """What compiled is nearer than what did not."""
    assert names(choose(agent(), [BROKEN, WRONG], {}, 1)) == ["wrong"]


def test_failures_are_mended_a_bounded_number_of_times() -> None:
    """After two attempts at one, another one's turn comes."""
    tried = children(a="wrong", b="wrong")
    assert names(choose(agent(), [BROKEN, WRONG], tried, 1)) == ["broken"]


def test_a_tree_looks_where_it_seldom_looked() -> None:
    """Without exploration the fastest; with it, what was never extended gets its turn."""
    tried = children(a="fast", b="fast", c="fast", d="fast")
    assert names(choose(agent(choosing="tree", exploration=0.0), [FAST, MIDDLE], tried, 2)) == ["fast"] * 2
    assert names(choose(agent(choosing="tree", exploration=1.0), [FAST, MIDDLE], tried, 1)) == ["middle"]


def test_a_trees_own_picks_count() -> None:
    """Within a round too, so that it spreads."""
    found = names(choose(agent(choosing="tree", exploration=2.0), [FAST, MIDDLE], {}, 4))
    assert set(found) == {"fast", "middle"}


@pytest.mark.parametrize("way", ["best_of_n", "beam", "tree"])
def test_deterministic_whatever_the_order_of_equals(way: str) -> None:
    """The same trials give the same choice."""
    trials = [SLOW, FAST, WRONG, MIDDLE, BROKEN]
    settings = agent(choosing=way)
    assert choose(settings, trials, {}, 5) == choose(settings, trials[::-1], {}, 5)


def test_the_best_is_a_measured_one() -> None:
    """None where nothing was measured: a failure has no time."""
    assert best_of([WRONG, SLOW, FAST]) is FAST
    assert best_of([WRONG, CHEAT]) is None
