"""Ablation: from one variant, one technique off at a time, all else equal; the report tells their worth.

The variant is the best that the rounds before the last one found; with one round, the default of each
implementation. A tunable that expresses no technique goes back to its default. Where the rules exclude the
variant without a technique, the nearest valid one stands in (`techniques`). The kind of table is that of
"Im2win: Memory Efficient Convolution on SIMD Architectures" (Lu et al., HPEC 2022), which takes its
optimizations away one by one.
"""

from collections.abc import Sequence

import msgspec

from pipeline.records.configuration.search_settings import Ablation
from pipeline.records.search.search_trial import Trial
from pipeline.search.spaces.lattice import Field
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.spaces.technique_removal import without_each
from pipeline.search.strategy import Budget, Strategy
from pipeline.search.strategy_registry import proposer
from pipeline.search.trial_losses import best


def propose(space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
    """In the last round the variants without one technique each; before it, what the search proposes."""
    if budget.round < budget.rounds - 1:
        settings = budget.settings(Ablation, "ablation")
        shorter = msgspec.structs.replace(budget, rounds=budget.rounds - 1)
        return proposer(settings.search)(space, history, shorter)
    found = best(history)
    centres = space.defaults() if found is None else [found.point]
    field = Field(space, history, budget)
    points: list[Point] = []
    for name, tunables in centres:
        lattice = field.lattices[name]
        others = (each.tunables for each in without_each(lattice.subspace, tunables))
        for changed in (tunables, *others):
            vector = lattice.vector(changed)
            if lattice.is_valid(vector) and vector not in field.taken[name]:
                points.append(field.take(name, vector))
    return points if budget.variants is None else points[: budget.variants]


STRATEGY = Strategy(
    description="From one variant, one technique off at a time: what each is worth.",
    propose=propose,
    wraps=lambda search: (search.ablation or Ablation()).search,
)
