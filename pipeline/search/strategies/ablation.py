"""Ablation: switch off one technique of a variant at a time; the report gives the value of each.

The variant is the best one of the rounds before the last; with a single round, the default of each
implementation. A tunable that expresses no technique returns to its default. If the constraints exclude the
variant without a technique, the nearest valid one is used. The table has the form of "Im2win: Memory
Efficient Convolution on SIMD Architectures" (Lu et al., HPEC 2022), which removes its optimizations one by
one.
"""

from collections.abc import Sequence

import msgspec

from pipeline.records.configuration.search_settings import Search
from pipeline.records.record import Record
from pipeline.records.search.search_trial import Trial
from pipeline.search.spaces.lattice import RoundSpace
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.spaces.technique_removal import without_each
from pipeline.search.strategy import Budget, Strategy, settings_of
from pipeline.search.strategy_registry import proposer
from pipeline.search.trial_losses import best


class Ablation(Record, frozen=True, kw_only=True):
    """Settings of the ablation."""

    search: str = "surrogate"
    """Strategy that searches for the best variant in all rounds but the last."""


def propose(space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
    """The points of the wrapped strategy; in the last round, the best variant without each technique."""
    if budget.round < budget.rounds - 1:
        settings = budget.settings(Ablation, "ablation")
        shorter = msgspec.structs.replace(budget, rounds=budget.rounds - 1)
        return proposer(settings.search)(space, history, shorter)
    found = best(history)
    centres = space.defaults() if found is None else [found.point]
    round_space = RoundSpace(space, history, budget)
    points: list[Point] = []
    for name, tunables in centres:
        lattice = round_space.lattices[name]
        others = (each.tunables for each in without_each(lattice.subspace, tunables))
        for changed in (tunables, *others):
            vector = lattice.vector(changed)
            if lattice.is_valid(vector) and vector not in round_space.taken[name]:
                points.append(round_space.take(name, vector))
    return points if budget.variants is None else points[: budget.variants]


def wrapped(search: Search) -> str:
    """The strategy that searches for the best variant."""
    return settings_of(search, Ablation, "ablation").search


STRATEGY = Strategy(
    description="Switches off one technique of the best variant at a time, to measure what each is worth.",
    propose=propose,
    settings=Ablation,
    wraps=wrapped,
    ablates=True,
)
