"""Latin hypercube: every value of every tunable about equally often, over all rounds together.

McKay, Beckman, Conover, "A Comparison of Three Methods for Selecting Values of Input Variables",
Technometrics 21(2), 1979. Where the rules leave no point of the design, the nearest one stands in for it.
"""

import random
from collections.abc import Sequence

from pipeline.records.search.search_trial import Trial
from pipeline.search.implementation_shares import evenly
from pipeline.search.spaces.lattice import Field, Lattice, Vector
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.strategy import Budget


def propose(space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
    """The defaults, then this round's part of the design."""
    field = Field(space, history, budget)
    return field.defaults_first(lambda count: _part(field, history, count))


def _part(field: Field, history: Sequence[Trial], count: int) -> list[Point]:
    """The design is drawn anew each round, the same one, and what was proposed of it is passed over."""
    total = field.budget.total or count
    designed = evenly(list(field.lattices), max(total - len(field.space.defaults()), count))
    done = {name: sum(trial.point[0] == name for trial in history) for name in field.lattices}
    now = evenly(sorted(field.lattices, key=lambda name: (done[name], name)), count)
    points: list[Point] = []
    for name, lattice in field.lattices.items():
        rows = design(lattice, designed[name], random.Random(f"{field.budget.seed} {name}"))
        start = max(done[name] - 1, 0)
        for wanted in rows[start : start + now[name]]:
            vector = lattice.nearest(wanted, field.taken[name], field.generator)
            if vector is not None:
                points.append(field.take(name, vector))
    return points + field.draw(count - len(points)) if len(points) < count else points


def design(lattice: Lattice, count: int, generator: random.Random) -> list[Vector]:
    """So many points: each tunable's strata shuffled for itself."""
    columns: list[list[int]] = []
    for axis in lattice.axes:
        column = [(2 * number + 1) * len(axis.values) // (2 * count) for number in range(count)]
        generator.shuffle(column)
        columns.append(column)
    return [tuple(column[number] for column in columns) for number in range(count)]
