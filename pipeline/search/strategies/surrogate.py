"""A Gaussian process over the valid points: the points with the largest expected improvement come next.

The model is evaluated on the valid points themselves, so that nothing invalid is proposed. It learns ranks,
as normal scores, instead of seconds: how slow the slow variants are does not matter, close times of good
variants are distinguished, and failures rank last. The points of a round are chosen one after the other, each
assumed to be measured at its predicted mean, so that they differ (kriging believer: Ginsbourger, Le Riche,
Carraro, 2010).
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipeline.records.record import Record, at_least
from pipeline.records.search.search_trial import Trial
from pipeline.search.gaussian_process import GaussianProcess, expected_improvement
from pipeline.search.spaces.lattice import Lattice, RoundSpace, Vector, shares
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.strategy import Budget, Strategy
from pipeline.search.trial_losses import latest_losses

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.search.gaussian_process import Numbers, Steps

POOL = 2_000
"""Maximum number of random points that are predicted in a round, in addition to those near the best."""
ELITES, REACH = 4, 2
"""Points that differ from one of the ELITES best in at most REACH tunables are predicted, too: a random
sample of a large space has few of them."""
WALKS = 12
"""If the space is not enumerated: number of neighbors of each best point whose neighbors are predicted."""


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
    """The defaults, random points at the start, then the points with the largest expected improvement."""
    settings = budget.settings(Surrogate, "surrogate")
    round_space = RoundSpace(space, history, budget)
    return round_space.defaults_first(lambda count: _round(round_space, history, count, settings))


def _round(round_space: RoundSpace, history: Sequence[Trial], count: int, settings: Surrogate) -> list[Point]:
    at_random = min(count, max(0, settings.startup - len(history)))
    points = round_space.draw(at_random)
    if at_random < count:
        for name, share in shares(round_space, history, count - at_random).items():
            points += _expected(round_space, name, history, share, settings)
    return points + round_space.draw(count - len(points)) if len(points) < count else points


def _expected(
    round_space: RoundSpace, name: str, history: Sequence[Trial], count: int, settings: Surrogate
) -> list[Point]:
    """The points of one implementation."""
    lattice = round_space.lattices[name]
    known = _ranked(lattice, name, history)[: settings.trials_at_most]
    if len(known) < 2 or count <= 0:
        return round_space.draw_of(name, count)
    observed = np.array([vector for vector, _ in known], dtype=np.int64).reshape(
        len(known), len(lattice.axes)
    )
    pool = _pool(round_space, name, [vector for vector, _ in known[:ELITES]])
    values = _scores([loss for _, loss in known])
    chosen = _best(GaussianProcess(lattice, observed, values), values, pool, count)
    return [round_space.take(name, tuple(pool[place].tolist())) for place in chosen]


def _ranked(lattice: Lattice, name: str, history: Sequence[Trial]) -> list[tuple[Vector, float]]:
    """Points that were tried, with their losses, the best first; the loss of a failure is infinite."""
    found = [
        (lattice.vector(each.trial.point[1]), math.inf if each.loss is None else each.loss)
        for each in latest_losses(history)
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


def _pool(round_space: RoundSpace, name: str, best: Sequence[Vector]) -> "Steps":
    """Points to choose from, none of them taken: a random sample, and those near the best."""
    lattice, taken = round_space.lattices[name], round_space.taken[name]
    if lattice.enumerable:
        free = np.ones(len(lattice.vectors), dtype=bool)
        free[[lattice.rows[vector] for vector in taken if vector in lattice.rows]] = False
        left: Steps = lattice.vectors[free]
        if len(left) <= POOL:
            return left
        kept = np.zeros(len(left), dtype=bool)
        kept[round_space.generator.sample(range(len(left)), POOL)] = True
        near = [(left != np.array(vector)).sum(1) <= REACH for vector in best]
        return left[_some(round_space, np.any(near, axis=0), POOL) | kept]
    drawn = dict.fromkeys(lattice.draw(round_space.generator, taken, POOL))
    for vector in best:  # random points are rarely close to the best ones
        near = lattice.neighbors(vector)
        drawn |= dict.fromkeys(near)
        for step in round_space.generator.sample(near, min(len(near), WALKS)):
            drawn |= dict.fromkeys(lattice.neighbors(step))
    free_ones = [vector for vector in drawn if vector not in taken]
    return np.array(free_ones, dtype=np.int64).reshape(len(free_ones), len(lattice.axes))


def _some(round_space: RoundSpace, chosen: "NDArray[np.bool_]", most: int) -> "NDArray[np.bool_]":
    """A random subset of the chosen ones, of at most `most`."""
    places = np.flatnonzero(chosen).tolist()
    found = np.zeros(len(chosen), dtype=bool)
    found[round_space.generator.sample(places, min(most, len(places)))] = True
    return found


def _best(process: GaussianProcess, values: "Numbers", pool: "Steps", count: int) -> list[int]:
    """Indices of the chosen points in the pool, in the order in which they were chosen."""
    posterior, least = process.predict(pool), float(values.min())
    chosen: list[int] = []
    for _ in range(min(count, len(pool))):
        gain = expected_improvement(posterior, least)
        gain[chosen] = -np.inf
        place = int(np.argmax(gain))
        chosen.append(place)
        least = min(least, float(posterior.mean[place]))
        posterior = process.fantasize(place)
    return chosen


STRATEGY = Strategy(
    description="A Gaussian process over the valid points; the largest expected improvements come next.",
    propose=propose,
    settings=Surrogate,
    may_be_wrapped=True,
    libraries=("numpy", "scipy"),
)
