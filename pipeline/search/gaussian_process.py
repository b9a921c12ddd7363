"""A Gaussian process over the points of a lattice.

The kernel is Matérn 5/2 of a distance that is a sum over the tunables. A tunable contributes up to three
terms: the distance of two values (on a logarithmic scale, because most are sizes and counts), the distance of
their alignment (factors of two: 96 is close to 112, but differs for a cache line), and a constant if they
differ (a neighboring value may behave differently). The weights have the largest posterior density.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline.search.spaces.lattice import Axis, Lattice

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]
    Steps = NDArray[np.int64]

WEIGHTS = (0.0, 0.02, 0.15, 1.0, 5.0, 25.0)
"""Weights of the squared distance between the two ends of a tunable, from no influence to no correlation."""
DIFFERING = (0.0, 0.15, 0.5, 1.5)
"""Weights of two values that differ, in addition to their distance."""
PRIOR = 0.1
"""Weight of the prior: with a few measurements, the largest likelihood is often due to chance."""
FITTED = 100
"""Maximum number of points that the weights are fitted to, because each evaluation has cubic cost."""
NOISES = (1e-4, 1e-3, 1e-2, 1e-1)
"""Variance of a measurement, as a share of the variance between the variants."""
LEAST = 1e-12  # of a variance


class Term(NamedTuple):
    """One term of the distance: how two values of a tunable differ."""

    columns: "Numbers"
    """Step -> coordinates; the squared distance of two steps is that of their rows."""
    grid: tuple[float, ...]
    start: float
    surprise: tuple[float, ...]
    """Distance of each weight of the grid from the usual one, for the prior."""


class Posterior(NamedTuple):
    """Mean and standard deviation of some points."""

    mean: "Numbers"
    deviation: "Numbers"


def terms(axis: Axis) -> list[Term]:
    """The terms of a tunable; without an order, or with two values, only whether they differ."""
    differing = np.eye(len(axis.values)) / math.sqrt(2)
    if not axis.ordered or len(axis.values) == 2:
        return [Term(differing, WEIGHTS, 0.6, _surprises(0.6))]
    numbers = [float(value) for value in axis.values]
    found = [
        Term(_scaled(numbers)[:, None], WEIGHTS, 0.6, _surprises(0.6)),
        Term(differing, DIFFERING, 0.15, DIFFERING),
    ]
    aligned = np.array([_factors_of_two(value) for value in numbers], dtype=np.float64)
    if np.any(np.diff(aligned) < 0):  # otherwise it is redundant with the size
        found.append(Term((aligned / aligned.max())[:, None], WEIGHTS, 0.0, _surprises(0.0)))
    return found


class GaussianProcess:
    """A fitted process; call `predict` with a pool of points, then `fantasize`."""

    def __init__(self, lattice: Lattice, observed: "Steps", values: "Numbers") -> None:
        """Fit to points, one row of steps each, the best first, and their values (mean 0, variance 1)."""
        self._terms = [(place, term) for place, axis in enumerate(lattice.axes) for term in terms(axis)]
        self._values = values
        self._weights, self._noise = self._fitted(observed)
        self._observed = self._embedded(observed)

    def predict(self, pool: "Steps") -> Posterior:
        """The posterior of a pool of points, one row of steps each."""
        from scipy.linalg import solve_triangular

        self._pool = self._embedded(pool)
        covariance = _covariance(_squared(self._observed, self._observed))
        factor = np.linalg.cholesky(covariance + (self._noise + 1e-8) * np.eye(len(covariance)))
        half = solve_triangular(factor, self._values, lower=True, check_finite=False)
        between = _covariance(_squared(self._observed, self._pool))
        self._across = solve_triangular(factor, between, lower=True, check_finite=False)
        self._scale = max(float(half @ half) / len(half), LEAST)
        self._variance = 1 - (self._across**2).sum(0)
        self._mean: Numbers = self._across.T @ half
        return self._posterior()

    def fantasize(self, place: int) -> Posterior:
        """The posterior if the point at this index of the pool is measured at its predicted mean.

        The means do not change; the deviation of close points becomes smaller.
        """
        near = _covariance(_squared(self._pool[[place]], self._pool))[0]
        shared = near - self._across[:, place] @ self._across
        row = shared / math.sqrt(max(float(self._variance[place]), 0.0) + self._noise)
        self._across = np.vstack([self._across, row])
        self._variance = self._variance - row**2
        return self._posterior()

    def _posterior(self) -> Posterior:
        return Posterior(self._mean, np.sqrt(self._scale * np.maximum(self._variance, LEAST)))

    def _embedded(self, points: "Steps") -> "Numbers":
        """Coordinates in which the distance is Euclidean."""
        found = [
            math.sqrt(weight) * term.columns[points[:, place]]
            for (place, term), weight in zip(self._terms, self._weights, strict=True)
            if weight > 0
        ]
        return np.concatenate(found, axis=1) if found else np.zeros((len(points), 1))

    def _fitted(self, observed: "Steps") -> "tuple[list[float], float]":
        """Weights and noise, by coordinate-wise search over their grids."""
        few = _few(len(observed))
        values, points = self._values[few], observed[few]
        coordinates = [term.columns[points[:, place]] for place, term in self._terms]
        apart = [_squared(each, each) for each in coordinates]
        weights, noise = [term.start for _, term in self._terms], NOISES[2]
        total = np.zeros((len(points), len(points)))
        for weight, each in zip(weights, apart, strict=True):
            total = total + weight * each
        for number, (_, term) in enumerate(self._terms):
            rest = total - weights[number] * apart[number]
            tried = {
                weight: _likelihood(rest + weight * apart[number], values, noise) - PRIOR * surprise
                for weight, surprise in zip(term.grid, term.surprise, strict=True)
            }
            weights[number] = max(tried, key=tried.__getitem__)
            total = rest + weights[number] * apart[number]
        return weights, max(NOISES, key=lambda each: _likelihood(total, values, each))


def _few(count: int) -> list[int]:
    """Indices of the points to fit: the best ones, and as many of the others, evenly spaced."""
    if count <= FITTED:
        return list(range(count))
    half = FITTED // 2
    return [*range(half), *(half + number * (count - half) // half for number in range(half))]


def _likelihood(squared: "Numbers", values: "Numbers", noise: float) -> float:
    from scipy.linalg import solve_triangular

    try:
        factor = np.linalg.cholesky(_covariance(squared) + noise * np.eye(len(squared)))
    except np.linalg.LinAlgError:
        return -math.inf
    half = solve_triangular(factor, values, lower=True, check_finite=False)
    # The optimal variance has a closed form.
    scale = float(half @ half) / len(half) + LEAST
    return float(-0.5 * len(half) * math.log(scale) - np.log(np.diag(factor)).sum())


def _surprises(usual: float) -> tuple[float, ...]:
    """Squared logarithm of the ratio to the usual length; 0.1 keeps it finite."""
    return tuple(math.log((math.sqrt(each) + 0.1) / (math.sqrt(usual) + 0.1)) ** 2 for each in WEIGHTS)


def expected_improvement(posterior: Posterior, least: float) -> "Numbers":
    """Expected expected_improvement below the least value."""
    from scipy.special import ndtr

    ahead = (least - posterior.mean) / posterior.deviation
    density = np.exp(-0.5 * ahead**2) / math.sqrt(2 * math.pi)
    gain: Numbers = (least - posterior.mean) * ndtr(ahead) + posterior.deviation * density
    return gain


def _covariance(squared: "Numbers") -> "Numbers":
    """Matérn 5/2."""
    distance = np.sqrt(5 * np.maximum(squared, 0.0))
    found: Numbers = (1 + distance + distance**2 / 3) * np.exp(-distance)
    return found


def _squared(one: "Numbers", other: "Numbers") -> "Numbers":
    found: Numbers = (one**2).sum(1)[:, None] + (other**2).sum(1)[None, :] - 2 * one @ other.T
    return found


def _scaled(numbers: Sequence[float]) -> "Numbers":
    """Scaled to 0 to 1, by logarithm if all are positive, otherwise by rank."""
    if numbers[0] <= 0:
        return np.linspace(0.0, 1.0, len(numbers))
    logs = np.log(numbers)
    found: Numbers = (logs - logs[0]) / (logs[-1] - logs[0])
    return found


def _factors_of_two(value: float) -> int:
    """The number of factors; 0 for 0 and for fractions."""
    if value == 0 or not value.is_integer():
        return 0
    whole = abs(int(value))
    return (whole & -whole).bit_length() - 1
