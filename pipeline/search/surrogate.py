"""A Gaussian process over the whole space: the variants with the largest expected improvement come next.

The model lives on the lattice of valid points, all of which it predicts, so nothing invalid is proposed and
no optimizer searches it. Of log seconds, Matérn 5/2, one length per tunable by marginal likelihood. A round's
points are chosen one after the other, each taken as measured at what the model expects of it, so that they
are not the same idea several times (kriging believer: Ginsbourger, Le Riche, Carraro, 2010).
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline.records.history import Trial
from pipeline.records.search import Surrogate
from pipeline.search.allocation import shares
from pipeline.search.lattice import Field, Lattice
from pipeline.search.learned import lessons, penalty
from pipeline.search.space import Point, Space, Tunables
from pipeline.search.strategy import Budget

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

LENGTHS = (0.15, 0.4, 1.0, 2.5, 6.0)
"""Of a tunable whose values span 1: from nothing learned beside a point to hardly any influence."""
NOISES = (1e-4, 1e-2, 1e-1)
"""Variance of a measurement, as a share of the variance between the variants."""
POOL = 20_000
"""Points that are predicted at most; of a larger space so many are drawn anew in every round."""

LEAST = 1e-12  # of a variance


class _Model(NamedTuple):
    """What was learned."""

    lengths: "Numbers"
    noise: float


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
    known = _ranked(name, history)[: settings.trials_at_most]
    if len(known) < 2 or count <= 0:
        return field.draw_of(name, count)
    told = _coordinates(lattice, np.array([lattice.vector(tunables) for _, tunables in known]))
    values = np.array([loss for loss, _ in known])
    spread = float(values.std())
    values = (values - values.mean()) / spread if spread > 0 else values * 0.0
    vectors = _pool(field, name, history)
    chosen = _best(_fitted(told, values), told, values, _coordinates(lattice, vectors), count)
    return [field.take(name, tuple(vectors[place].tolist())) for place in chosen]


def _pool(field: Field, name: str, history: Sequence[Trial]) -> "NDArray[np.int64]":
    """Points to choose from: all that are left, or some."""
    lattice = field.lattices[name]
    if lattice.enumerable and len(lattice.vectors) <= POOL:
        left = [vector not in field.taken[name] for vector in lattice.rows]
        free: NDArray[np.int64] = lattice.vectors[np.array(left, dtype=bool)]
        return free
    drawn = dict.fromkeys(lattice.draw(field.generator, field.taken[name], POOL))
    for _, tunables in _ranked(name, history)[:8]:  # random points are seldom beside the best ones
        beside = lattice.neighbours(lattice.vector(tunables))
        drawn |= dict.fromkeys(vector for vector in beside if vector not in field.taken[name])
    return np.array(list(drawn), dtype=np.int64).reshape(len(drawn), len(lattice.axes))


def _ranked(name: str, history: Sequence[Trial]) -> list[tuple[float, Tunables]]:
    """Log seconds and tunables of what was tried, the best first; a failure is worse than all that passed."""
    tried = lessons(history)
    worst = penalty([each.loss for each in tried])
    found = [
        (worst if each.loss is None else each.loss, each.trial.point[1])
        for each in tried
        if each.trial.point[0] == name
    ]
    return sorted(
        [(loss, tunables) for loss, tunables in found if loss is not None], key=lambda each: each[0]
    )


def _coordinates(lattice: Lattice, vectors: "NDArray[np.int64]") -> "Numbers":
    """Each tunable from 0 to 1; a column for each value of one that has no order."""
    columns: list[Numbers] = []
    for place, axis in enumerate(lattice.axes):
        steps = vectors[:, place]
        if axis.ordered:
            columns.append(steps / (len(axis.values) - 1))
        else:
            columns += [(steps == value) / math.sqrt(2) for value in range(len(axis.values))]
    return np.stack(columns, axis=1) if columns else np.zeros((len(vectors), 1))


def _kernel(one: "Numbers", other: "Numbers", lengths: "Numbers") -> "Numbers":
    """Matérn 5/2 of the scaled distance."""
    a, b = one / lengths, other / lengths
    square = (a**2).sum(1)[:, None] + (b**2).sum(1)[None, :] - 2 * a @ b.T
    distance = np.sqrt(5 * np.maximum(square, 0.0))
    found: Numbers = (1 + distance + distance**2 / 3) * np.exp(-distance)
    return found


def _fitted(told: "Numbers", values: "Numbers") -> _Model:
    """Lengths and noise by marginal likelihood, one coordinate after the other."""
    model = _Model(np.full(told.shape[1], 0.8), NOISES[1])
    best = _likelihood(told, values, model)
    for place in range(told.shape[1]):
        for length in LENGTHS:
            lengths = model.lengths.copy()
            lengths[place] = length
            tried = model._replace(lengths=lengths)
            found = _likelihood(told, values, tried)
            if found > best:
                best, model = found, tried
    for noise in NOISES:
        tried = model._replace(noise=noise)
        found = _likelihood(told, values, tried)
        if found > best:
            best, model = found, tried
    return model


def _likelihood(told: "Numbers", values: "Numbers", model: _Model) -> float:
    from scipy.linalg import solve_triangular

    covariance = _kernel(told, told, model.lengths) + model.noise * np.eye(len(told))
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return -math.inf
    half = solve_triangular(factor, values, lower=True, check_finite=False)
    # The variance itself has its best value in closed form.
    scale = half @ half / len(values) + LEAST
    return float(-0.5 * len(values) * np.log(scale) - np.log(np.diag(factor)).sum())


def _best(model: _Model, told: "Numbers", values: "Numbers", pool: "Numbers", count: int) -> list[int]:
    """Places in the pool, one after the other."""
    from scipy.linalg import solve_triangular

    covariance = _kernel(told, told, model.lengths) + model.noise * np.eye(len(told))
    factor = np.linalg.cholesky(covariance)
    half = solve_triangular(factor, values, lower=True)
    across = solve_triangular(factor, _kernel(told, pool, model.lengths), lower=True)
    scale = max(float(half @ half) / len(values), LEAST)
    mean = across.T @ half
    variance = 1 - (across**2).sum(0)
    least, chosen = float(values.min()), list[int]()
    for _ in range(min(count, len(pool))):
        gain = _improvement(mean, np.sqrt(scale * np.maximum(variance, LEAST)), least)
        gain[chosen] = -math.inf
        place = int(np.argmax(gain))
        chosen.append(place)
        # What was believed leaves every expectation as it is; only the doubt about its surroundings goes.
        shared = _kernel(pool[[place]], pool, model.lengths)[0] - across[:, place] @ across
        row = shared / math.sqrt(max(float(variance[place]), 0.0) + model.noise)
        across = np.vstack([across, row])
        variance = variance - row**2
        least = min(least, float(mean[place]))
    return chosen


def _improvement(mean: "Numbers", deviation: "Numbers", least: float) -> "Numbers":
    """Expected improvement below the least value."""
    from scipy.special import erf

    ahead = (least - mean) / deviation
    density = np.exp(-0.5 * ahead**2) / math.sqrt(2 * math.pi)
    share = 0.5 * (1 + erf(ahead / math.sqrt(2)))
    gain: Numbers = (least - mean) * share + deviation * density
    return gain
