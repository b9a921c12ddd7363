"""A Gaussian process over the valid points: the variants with the largest expected improvement come next.

The model lives on the lattice of valid points, so nothing invalid is proposed and no optimizer searches it.
It learns ranks, as normal scores, and not seconds: how many times slower the slow ones are does not matter,
the good ones are told apart however close they lie, and a failure is simply the last. A round's points are
chosen one after the other, each taken as measured at what the model expects of it, so that they are not the
same idea several times (kriging believer: Ginsbourger, Le Riche, Carraro, 2010).
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipeline.records.record import Record
from pipeline.records.search.search_trial import Trial
from pipeline.records.validation import at_least
from pipeline.search.gaussian_process import Process, improvement
from pipeline.search.spaces.lattice import Field, Lattice, Vector, shares
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.strategy import Budget, Strategy
from pipeline.search.trial_losses import lessons

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.search.gaussian_process import Numbers, Steps

POOL = 2_000
"""Points that are predicted at most beside those near the best; so many are drawn anew in every round."""
ELITES, REACH = 4, 2
"""Around so many of the best, points that differ in at most so many tunables are predicted, too: the pool
of a large space holds few of them."""
WALKS = 12
"""Of a space that is not enumerated: from so many neighbors of each of the best another step is taken."""


class Surrogate(Record, frozen=True, kw_only=True):
    """Settings of the Gaussian process over the valid points."""

    startup: int = 8
    """Random points before the model is used."""
    trials_at_most: int = 400
    """Maximum number of measured points in the model, the best ones; its cost is cubic."""

    def __post_init__(self) -> None:
        """Raise ValueError for a model without observations."""
        at_least(self, startup=2, trials_at_most=2)


def propose(space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
    """The defaults, some at random, then what the model expects most of."""
    settings = budget.settings(Surrogate, "surrogate")
    field = Field(space, history, budget)
    return field.defaults_first(lambda count: _round(field, history, count, settings))


def _round(field: Field, history: Sequence[Trial], count: int, settings: Surrogate) -> list[Point]:
    at_random = min(count, max(0, settings.startup - len(history)))
    points = field.draw(at_random)
    if at_random < count:
        for name, share in shares(field, history, count - at_random).items():
            points += _expected(field, name, history, share, settings)
    return points + field.draw(count - len(points)) if len(points) < count else points


def _expected(
    field: Field, name: str, history: Sequence[Trial], count: int, settings: Surrogate
) -> list[Point]:
    """The points of one implementation."""
    lattice = field.lattices[name]
    known = _ranked(lattice, name, history)[: settings.trials_at_most]
    if len(known) < 2 or count <= 0:
        return field.draw_of(name, count)
    told = np.array([vector for vector, _ in known], dtype=np.int64).reshape(len(known), len(lattice.axes))
    pool = _pool(field, name, [vector for vector, _ in known[:ELITES]])
    values = _scores([loss for _, loss in known])
    chosen = _best(Process(lattice, told, values), values, pool, count)
    return [field.take(name, tuple(pool[place].tolist())) for place in chosen]


def _ranked(lattice: Lattice, name: str, history: Sequence[Trial]) -> list[tuple[Vector, float]]:
    """Points that were tried, with their losses, the best first; that of a failure is infinite."""
    found = [
        (lattice.vector(each.trial.point[1]), math.inf if each.loss is None else each.loss)
        for each in lessons(history)
        if each.trial.point[0] == name
    ]
    return sorted(found, key=lambda each: each[1])


def _scores(losses: Sequence[float]) -> "Numbers":
    """Ranks as quantiles of the normal distribution, with mean 0 and variance 1; equal losses are alike."""
    from scipy.special import ndtri

    _, places, counts = np.unique(losses, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2 - 0.5
    scores: Numbers = ndtri(middle / len(losses))[places]
    spread = float(scores.std())
    return (scores - scores.mean()) / spread if spread > 0 else scores * 0.0


def _pool(field: Field, name: str, best: Sequence[Vector]) -> "Steps":
    """Points to choose from, none of them taken: some of all, and those near the best."""
    lattice, taken = field.lattices[name], field.taken[name]
    if lattice.enumerable:
        free = np.ones(len(lattice.vectors), dtype=bool)
        free[[lattice.rows[vector] for vector in taken if vector in lattice.rows]] = False
        left: Steps = lattice.vectors[free]
        if len(left) <= POOL:
            return left
        kept = np.zeros(len(left), dtype=bool)
        kept[field.generator.sample(range(len(left)), POOL)] = True
        near = [(left != np.array(vector)).sum(1) <= REACH for vector in best]
        return left[_some(field, np.any(near, axis=0), POOL) | kept]
    drawn = dict.fromkeys(lattice.draw(field.generator, taken, POOL))
    for vector in best:  # random points are seldom beside the best ones
        beside = lattice.neighbors(vector)
        drawn |= dict.fromkeys(beside)
        for step in field.generator.sample(beside, min(len(beside), WALKS)):
            drawn |= dict.fromkeys(lattice.neighbors(step))
    free_ones = [vector for vector in drawn if vector not in taken]
    return np.array(free_ones, dtype=np.int64).reshape(len(free_ones), len(lattice.axes))


def _some(field: Field, chosen: "NDArray[np.bool_]", most: int) -> "NDArray[np.bool_]":
    """At most so many of those that are chosen."""
    places = np.flatnonzero(chosen).tolist()
    found = np.zeros(len(chosen), dtype=bool)
    found[field.generator.sample(places, min(most, len(places)))] = True
    return found


def _best(process: Process, values: "Numbers", pool: "Steps", count: int) -> list[int]:
    """Places in the pool, one after the other."""
    belief, least = process.expect(pool), float(values.min())
    chosen: list[int] = []
    for _ in range(min(count, len(pool))):
        gain = improvement(belief, least)
        gain[chosen] = -np.inf
        place = int(np.argmax(gain))
        chosen.append(place)
        least = min(least, float(belief.mean[place]))
        belief = process.take(place)
    return chosen


STRATEGY = Strategy(
    description="A Gaussian process over the valid points; the largest expected improvements come next.",
    propose=propose,
    settings=Surrogate,
    may_be_wrapped=True,
    libraries=("numpy", "scipy"),
)
