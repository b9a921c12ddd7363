"""Which attempts to extend in the next round: trials and who came of whom in, one parent per new attempt out.

`best_of_n`: all new attempts extend the best variant. `beam`: they are shared among the `width` best. `tree`:
each goes where an upper confidence bound is highest (Kocsis and Szepesvari 2006, UCT): speed relative to the
best, plus what is gained by looking where few attempts were made; a variant that failed may be mended, too.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from pipeline.records.outcome import Outcome
from pipeline.records.search.search_trial import Trial
from pipeline.search.agents.agent_settings import Agent

NEVER = frozenset({Outcome.TAMPERED, Outcome.OVER_ROOFLINE})
"""What cheats is not extended: its time says nothing, and its way is not to be followed."""
MENDED_AT_MOST = 2
"""How often a failed variant is extended: after that, others are worth more."""

_FAILED = {"generate": 0.0, "compile": 0.2, "verify": 0.3, "profile": 0.4}
"""Stage in which a variant failed -> its value for the tree, where the fastest has 1: the further it came."""
_UNTIMED = 0.5
"""Of a variant that passed where there is no device to measure it."""


def choose(
    agent: Agent, trials: Sequence[Trial], parents: Mapping[str, str | None], wanted: int
) -> list[Trial]:
    """`wanted` parents, some of them several times; none where nothing can be extended.

    `parents` maps the id of a variant to that of the one it came of.
    """
    open_ones = _extendable(trials, parents)
    if not open_ones or wanted < 1:
        return []
    if agent.choosing == "tree":
        return _tree(agent, open_ones, parents, wanted)
    ranked = sorted(open_ones, key=_rank)
    width = 1 if agent.choosing == "best_of_n" else agent.width
    return [ranked[number % min(width, len(ranked))] for number in range(wanted)]


def best_of(trials: Sequence[Trial]) -> Trial | None:
    """The fastest that passed; None where none was measured."""
    measured = [trial for trial in trials if trial.seconds is not None]
    return min(measured, key=_rank) if measured else None


def _extendable(trials: Sequence[Trial], parents: Mapping[str, str | None]) -> list[Trial]:
    children = Counter(parent for parent in parents.values() if parent is not None)
    seen: dict[str, Trial] = {}
    for trial in trials:
        failed = trial.outcome not in (Outcome.PASSED, Outcome.DEVICE_UNAVAILABLE)
        spent = failed and children[trial.variant.id] >= MENDED_AT_MOST
        if trial.outcome not in NEVER and not spent:
            seen.setdefault(trial.variant.id, trial)
    return list(seen.values())


def _rank(trial: Trial) -> tuple[float, float, int, str]:
    """Measured ones by their time, then those that passed without one, then failures: the furthest first."""
    seconds = trial.seconds.value if trial.seconds is not None else math.inf
    value = 1.0 if trial.seconds is not None else _value(trial, math.inf)
    return (-value, seconds, -trial.round, trial.variant.id)


def _value(trial: Trial, fastest: float) -> float:
    """Between 0 and 1, for the tree."""
    if trial.seconds is not None:
        return fastest / trial.seconds.value
    if trial.outcome is Outcome.DEVICE_UNAVAILABLE:
        return _UNTIMED
    return _FAILED[trial.stage]


def _tree(
    agent: Agent, trials: Sequence[Trial], parents: Mapping[str, str | None], wanted: int
) -> list[Trial]:
    best = best_of(trials)
    fastest = best.seconds.value if best is not None and best.seconds is not None else math.inf
    visits = Counter(parent for parent in parents.values() if parent is not None)
    chosen = []
    for _ in range(wanted):
        total = 1 + sum(visits.values())

        def score(trial: Trial, total: int = total) -> tuple[float, int, str]:
            looked = math.sqrt(math.log(total) / (1 + visits[trial.variant.id]))
            return (_value(trial, fastest) + agent.exploration * looked, trial.round, trial.variant.id)

        picked = max(trials, key=score)
        visits[picked.variant.id] += 1
        chosen.append(picked)
    return chosen
