"""A space as a lattice of steps, and what a round may still choose from it.

Numbers are in ascending order, so that a step is a small change; truth values and names have no order, and
any other value is one step away. Invalid points are never proposed and rejected afterwards: if the space can
be enumerated, the nearest valid point is looked up, otherwise it is found by a random walk.
"""

import collections
import functools
import math
import random
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.record import from_json, to_json
from pipeline.records.search.search_trial import Trial
from pipeline.search.spaces.search_space import Point, Space, Subspace, Tunables
from pipeline.search.strategy import Budget
from pipeline.search.trial_losses import TrialLoss, latest_losses

if TYPE_CHECKING:
    import numpy as np

Vector = tuple[int, ...]
"""Step of each tunable that varies."""

ENUMERABLE = 200_000  # valid points; beyond it, points are drawn one by one
DRAWS = 200  # from a space that is not enumerated, for one point that is new


class Axis:
    """One tunable that varies."""

    def __init__(self, name: str, values: Sequence[TunableValue]) -> None:
        self.name = name
        self.ordered = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        self.values = sorted(values) if self.ordered else list(values)
        self._steps = {value: step for step, value in enumerate(self.values)}

    def step(self, value: TunableValue) -> int:
        """The step of a value."""
        return self._steps[value]

    def closest(self, value: TunableValue | None, otherwise: int) -> int:
        """The step of the value that is closest to one that need not be in the axis."""
        if value in self._steps:
            return self._steps[value]
        if not self.ordered or not isinstance(value, int | float):
            return otherwise
        return min(range(len(self.values)), key=lambda step: abs(float(self.values[step]) - value))

    def adjacent(self, step: int) -> list[int]:
        """The neighboring steps; all other steps if there is no order."""
        near = (step - 1, step + 1) if self.ordered else range(len(self.values))
        return [each for each in near if 0 <= each < len(self.values) and each != step]


class Lattice:
    """The points of one implementation."""

    def __init__(self, subspace: Subspace) -> None:
        self.subspace = subspace
        self.axes = tuple(Axis(name, values) for name, values in subspace.values.items() if len(values) > 1)
        self._fixed = {name: values[0] for name, values in subspace.values.items() if len(values) == 1}

    @functools.cached_property
    def enumerable(self) -> bool:
        """Whether all its points fit into memory at once."""
        return self.subspace.count <= ENUMERABLE

    @functools.cached_property
    def vectors(self) -> "np.ndarray":
        """All valid points, one row each."""
        import numpy as np

        names = list(self.subspace.values)
        blocks = [np.zeros((0, len(names)), dtype=np.int64), *self.subspace.solver.blocks()]
        places = np.concatenate(blocks)
        columns = [
            np.array([axis.step(value) for value in self.subspace.values[axis.name]])[
                places[:, names.index(axis.name)]
            ]
            for axis in self.axes
        ]
        rows = np.stack(columns, axis=1) if columns else np.zeros((len(places), 0), dtype=np.int64)
        return rows[np.lexsort(rows.T[::-1])] if columns else rows

    @functools.cached_property
    def rows(self) -> dict[Vector, int]:
        """Valid point -> its row."""
        return {tuple(row): number for number, row in enumerate(self.vectors.tolist())}

    def vector(self, tunables: Tunables) -> Vector:
        """Steps of a point."""
        return tuple(axis.step(tunables[axis.name]) for axis in self.axes)

    def closest(self, tunables: Tunables) -> Vector:
        """Steps of a point of another space: unknown values become the nearest ones, or the default."""
        default = self.vector(self.subspace.default)
        return tuple(
            axis.closest(tunables.get(axis.name), default[place]) for place, axis in enumerate(self.axes)
        )

    def tunables(self, vector: Iterable[int]) -> Tunables:
        """The point at these steps, in the order in which the tunables are declared."""
        varied = {axis.name: axis.values[step] for axis, step in zip(self.axes, vector, strict=True)}
        return {name: varied.get(name, self._fixed.get(name)) for name in self.subspace.values}  # type: ignore[misc]

    def point(self, vector: Iterable[int]) -> Point:
        """The same with the implementation's name."""
        return self.subspace.implementation, self.tunables(vector)

    def is_valid(self, vector: Vector) -> bool:
        """Whether the constraints allow it."""
        if self.enumerable:
            return vector in self.rows
        return self.subspace.contains(self.tunables(vector))

    def neighbors(self, vector: Vector) -> list[Vector]:
        """Valid points that differ by one step of one tunable."""
        found = (
            (*vector[:place], step, *vector[place + 1 :])
            for place, axis in enumerate(self.axes)
            for step in axis.adjacent(vector[place])
        )
        return [each for each in found if self.is_valid(each)]

    def draw(self, generator: random.Random, taken: set[Vector], count: int) -> list[Vector]:
        """Valid points that are not taken, uniformly at random; fewer than `count` if no more are left."""
        if self.enumerable:
            left = [vector for vector in self.rows if vector not in taken]
            return generator.sample(left, min(count, len(left)))
        found: dict[Vector, None] = {}
        for _ in range(DRAWS):
            for _, tunables in Space(subspaces=(self.subspace,)).sample(generator, count - len(found)):
                vector = self.vector(tunables)
                if vector not in taken:
                    found[vector] = None
            if len(found) >= count:
                break
        return list(found)[:count]

    def nearest(self, wanted: Vector, taken: set[Vector], generator: random.Random) -> Vector | None:
        """The valid point that is closest to the wanted one and not taken; None: none left.

        If the space is not enumerated: the first one on a random walk from the wanted point.
        """
        if wanted not in taken and self.is_valid(wanted):
            return wanted
        return (
            self._looked_up(wanted, taken, generator)
            if self.enumerable
            else self._walked(wanted, taken, generator)
        )

    def _looked_up(self, wanted: Vector, taken: set[Vector], generator: random.Random) -> Vector | None:
        import numpy as np

        if len(self.rows) == 0:
            return None
        distance = np.zeros(len(self.vectors))
        for place, axis in enumerate(self.axes):
            column = self.vectors[:, place]
            if axis.ordered:
                distance += np.abs(column - wanted[place]) / (len(axis.values) - 1)
            else:
                distance += column != wanted[place]
        held = [self.rows[vector] for vector in taken if vector in self.rows]
        distance[held] = np.inf
        least = float(distance.min())
        if least == np.inf:
            return None
        ties = np.flatnonzero(distance <= least + 1e-9)
        return tuple(self.vectors[ties[generator.randrange(len(ties))]].tolist())

    def _walked(self, wanted: Vector, taken: set[Vector], generator: random.Random) -> Vector | None:
        """Change more and more tunables by a step, until the constraints allow the point."""
        for attempt in range(DRAWS):
            vector = list(wanted)
            for place in generator.sample(range(len(self.axes)), min(1 + attempt // 20, len(self.axes))):
                vector[place] = generator.choice(self.axes[place].adjacent(vector[place]))
            found = tuple(vector)
            if found not in taken and self.is_valid(found):
                return found
        return next(iter(self.draw(generator, taken, 1)), None)


def lattice(subspace: Subspace) -> Lattice:
    """The lattice of a subspace; equal ones are enumerated once per process."""
    return lattice_of(to_json(subspace), tuple(subspace.values))


@functools.lru_cache(maxsize=64)
def lattice_of(content: bytes, order: tuple[str, ...]) -> Lattice:
    """The lattice of a subspace as JSON, with its tunables in this order."""
    found = from_json(content, Subspace)
    # Sorted JSON loses the order in which the tunables are declared.
    return Lattice(
        msgspec.structs.replace(
            found,
            values={name: found.values[name] for name in order},
            default={name: found.default[name] for name in order},
        )
    )


class RoundSpace:
    """What a round may still choose from: the space without the points of earlier rounds and of this one."""

    def __init__(self, space: Space, history: Sequence[Trial], budget: Budget) -> None:
        self.space = space
        self.budget = budget
        self.lattices = {each.implementation: lattice(each) for each in space.subspaces}
        self.generator = random.Random(f"{budget.seed} {budget.round}")
        self.taken: dict[str, set[Vector]] = {name: set() for name in self.lattices}
        for trial in history:
            name, tunables = trial.point
            if name in self.lattices:
                self.taken[name].add(self.lattices[name].vector(tunables))

    def take(self, name: str, vector: Vector) -> Point:
        """Propose a point in this round."""
        self.taken[name].add(vector)
        return self.lattices[name].point(vector)

    def draw(self, count: int | None) -> list[Point]:
        """Points of all implementations, uniformly at random; None: all that are left."""
        if count is None:
            return [self.take(name, vector) for name in self.lattices for vector in self._left(name)]
        sizes = {name: self._size(name) - len(self.taken[name]) for name in self.lattices}
        weights = [max(size, 0) for size in sizes.values()]
        if not any(weights):
            return []
        shares = collections.Counter(self.generator.choices(list(sizes), weights, k=count))
        drawn = [point for name in sizes for point in self.draw_of(name, shares[name])]
        self.generator.shuffle(drawn)
        # If an implementation has too few points left, another one fills up.
        for name in sizes:
            drawn += self.draw_of(name, count - len(drawn))
        return drawn

    def draw_of(self, name: str, count: int) -> list[Point]:
        """Points of one implementation at random."""
        vectors = self.lattices[name].draw(self.generator, self.taken[name], max(count, 0))
        return [self.take(name, vector) for vector in vectors]

    def defaults_first(self, others: Callable[[int], list[Point]]) -> list[Point]:
        """The defaults that are valid and new, then `others` for the rest of the budget.

        Without a budget: everything that is left, in the first round.
        """
        if self.budget.variants is None and self.budget.round > 0:
            return []
        chosen: list[Point] = []
        for name, tunables in self.space.defaults():
            vector = self.lattices[name].vector(tunables)
            full = self.budget.variants is not None and len(chosen) >= self.budget.variants
            if not full and vector not in self.taken[name] and self.lattices[name].is_valid(vector):
                chosen.append(self.take(name, vector))
        if self.budget.variants is None:
            return chosen + self.draw(None)
        wanted = self.budget.variants - len(chosen)
        return chosen + others(wanted) if wanted else chosen

    def _left(self, name: str) -> list[Vector]:
        return [vector for vector in self.lattices[name].rows if vector not in self.taken[name]]

    def _size(self, name: str) -> int:
        return self.lattices[name].subspace.count


TRIED = 4
"""Trials of an implementation before its best time counts."""


def shares(round_space: RoundSpace, history: Sequence[Trial], count: int) -> dict[str, int]:
    """Points of a round by implementation: evenly until each was tried, then half to the best one."""
    by_name = {
        name: [each for each in latest_losses(history) if each.trial.point[0] == name]
        for name in round_space.lattices
    }
    fewest = min(by_name, key=lambda name: (len(by_name[name]), name))
    best = min(by_name, key=lambda name: (_best_loss(by_name[name]), name))
    if len(by_name) == 1 or len(by_name[fewest]) < TRIED or _best_loss(by_name[best]) == math.inf:
        ahead: list[str] = []
    else:
        ahead = [best] * ((count + 1) // 2)
    others = sorted(
        (name for name in by_name if not ahead or name != best), key=lambda name: len(by_name[name])
    )
    turns = ahead + [others[turn % len(others)] for turn in range(count - len(ahead))]
    return {name: turns.count(name) for name in round_space.lattices}


def evenly(names: Sequence[str], count: int) -> dict[str, int]:
    """A number divided among the names, the first ones first."""
    return {name: count // len(names) + (turn < count % len(names)) for turn, name in enumerate(names)}


def _best_loss(known: Sequence[TrialLoss]) -> float:
    return min((each.loss for each in known if each.loss is not None), default=math.inf)
