"""How many points each implementation gets. In: a field, a history, a count. Out: a share for each."""

from collections.abc import Sequence

from pipeline.records.search.search_trial import Trial
from pipeline.search.spaces.lattice import Field
from pipeline.search.trial_losses import Lesson, lessons

TRIED = 4
"""Trials after which an implementation is judged by its best."""


def shares(field: Field, history: Sequence[Trial], count: int) -> dict[str, int]:
    """Evenly until each was tried; then half to the one that has the best variant, the rest to the others."""
    by_name = {
        name: [each for each in lessons(history) if each.trial.point[0] == name] for name in field.lattices
    }
    fewest = min(by_name, key=lambda name: (len(by_name[name]), name))
    best = min(by_name, key=lambda name: (_best(by_name[name]), name))
    if len(by_name) == 1 or len(by_name[fewest]) < TRIED or _best(by_name[best]) == float("inf"):
        ahead: list[str] = []
    else:
        ahead = [best] * ((count + 1) // 2)
    others = sorted(
        (name for name in by_name if not ahead or name != best), key=lambda name: len(by_name[name])
    )
    turns = ahead + [others[turn % len(others)] for turn in range(count - len(ahead))]
    return {name: turns.count(name) for name in field.lattices}


def evenly(names: Sequence[str], count: int) -> dict[str, int]:
    """So many turns among the names, the first ones first."""
    return {name: count // len(names) + (turn < count % len(names)) for turn, name in enumerate(names)}


def _best(known: Sequence[Lesson]) -> float:
    return min((each.loss for each in known if each.loss is not None), default=float("inf"))
