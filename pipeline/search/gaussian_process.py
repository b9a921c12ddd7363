"""A Gaussian process over the points of a lattice. In: points and values. Out: what it expects elsewhere.

Matérn 5/2 of a distance that adds up over the tunables, each of which counts in up to three ways: how far
apart two values are (on a logarithmic scale, as sizes and counts are), how far apart their alignment is
(factors of two: 96 lies beside 112 and is another thing to a cache line), and that they differ at all (a
neighbor may have nothing in common). The weights are those of the largest posterior density.
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
"""Of the squared distance between the two ends of a tunable: from no influence to nothing in common."""
DIFFERING = (0.0, 0.15, 0.5, 1.5)
"""The same of differing at all, beside a distance."""
PRIOR = 0.1
"""Weight of the prior: with a handful of measurements the largest likelihood is often that of a chance."""
FITTED = 100
"""Points at most that the weights are learned from, best ones and others: each try costs a cube."""
NOISES = (1e-4, 1e-3, 1e-2, 1e-1)
"""Variance of a measurement, as a share of the variance between the variants."""
LEAST = 1e-12  # of a variance


class Term(NamedTuple):
    """One way in which a tunable counts."""

    columns: "Numbers"
    """Step -> coordinates; the squared distance of two steps is that of their rows."""
    grid: tuple[float, ...]
    start: float
    surprise: tuple[float, ...]
    """How far each weight of the grid lies from what is usual, for the prior."""


class Belief(NamedTuple):
    """What the process says of some points."""

    mean: "Numbers"
    deviation: "Numbers"


def terms(axis: Axis) -> list[Term]:
    """How a tunable counts; one without an order, or with two values, only by differing."""
    differing = np.eye(len(axis.values)) / math.sqrt(2)
    if not axis.ordered or len(axis.values) == 2:
        return [Term(differing, WEIGHTS, 0.6, _surprises(0.6))]
    numbers = [float(value) for value in axis.values]
    found = [
        Term(_scaled(numbers)[:, None], WEIGHTS, 0.6, _surprises(0.6)),
        Term(differing, DIFFERING, 0.15, DIFFERING),
    ]
    aligned = np.array([_factors_of_two(value) for value in numbers], dtype=np.float64)
    if np.any(np.diff(aligned) < 0):  # else it says the same as the size does
        found.append(Term((aligned / aligned.max())[:, None], WEIGHTS, 0.0, _surprises(0.0)))
    return found


class Process:
    """A process that has learned; `expect` and `take` belong to one pool of points."""

    def __init__(self, lattice: Lattice, told: "Steps", values: "Numbers") -> None:
        """Learn from points, one row of steps each, and their values (mean 0, variance 1)."""
        self._terms = [(place, term) for place, axis in enumerate(lattice.axes) for term in terms(axis)]
        self._values = values
        self._weights, self._noise = self._fitted(told)
        self._told = self._embedded(told)

    def expect(self, pool: "Steps") -> Belief:
        """Of points, one row each."""
        from scipy.linalg import solve_triangular

        self._pool = self._embedded(pool)
        covariance = _covariance(_squared(self._told, self._told))
        factor = np.linalg.cholesky(covariance + (self._noise + 1e-8) * np.eye(len(covariance)))
        half = solve_triangular(factor, self._values, lower=True, check_finite=False)
        between = _covariance(_squared(self._told, self._pool))
        self._across = solve_triangular(factor, between, lower=True, check_finite=False)
        self._scale = max(float(half @ half) / len(half), LEAST)
        self._variance = 1 - (self._across**2).sum(0)
        self._mean: Numbers = self._across.T @ half
        return self._belief()

    def take(self, place: int) -> Belief:
        """The same when the point at a place of the pool will have been measured as it is expected to be.

        What was believed leaves every expectation as it is; only the doubt about its surroundings goes.
        """
        near = _covariance(_squared(self._pool[[place]], self._pool))[0]
        shared = near - self._across[:, place] @ self._across
        row = shared / math.sqrt(max(float(self._variance[place]), 0.0) + self._noise)
        self._across = np.vstack([self._across, row])
        self._variance = self._variance - row**2
        return self._belief()

    def _belief(self) -> Belief:
        return Belief(self._mean, np.sqrt(self._scale * np.maximum(self._variance, LEAST)))

    def _embedded(self, points: "Steps") -> "Numbers":
        """Coordinates in which the distance is the plain one."""
        found = [
            math.sqrt(weight) * term.columns[points[:, place]]
            for (place, term), weight in zip(self._terms, self._weights, strict=True)
            if weight > 0
        ]
        return np.concatenate(found, axis=1) if found else np.zeros((len(points), 1))

    def _fitted(self, told: "Steps") -> "tuple[list[float], float]":
        """Weights and noise, one after the other; the points come with the best ones first."""
        few = _few(len(told))
        values, points = self._values[few], told[few]
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
    """The first half of what may be fitted, and as many others, evenly."""
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
    # The variance itself has its best value in closed form.
    scale = float(half @ half) / len(half) + LEAST
    return float(-0.5 * len(half) * math.log(scale) - np.log(np.diag(factor)).sum())


def _surprises(usual: float) -> tuple[float, ...]:
    """Squared logarithm of how many times the length differs from the usual one; 0.1 keeps it finite."""
    return tuple(math.log((math.sqrt(each) + 0.1) / (math.sqrt(usual) + 0.1)) ** 2 for each in WEIGHTS)


def improvement(belief: Belief, least: float) -> "Numbers":
    """Expected improvement below the least value."""
    from scipy.special import ndtr

    ahead = (least - belief.mean) / belief.deviation
    density = np.exp(-0.5 * ahead**2) / math.sqrt(2 * math.pi)
    gain: Numbers = (least - belief.mean) * ndtr(ahead) + belief.deviation * density
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
    """From 0 to 1 by their logarithms; by their places, where one of them has none."""
    if numbers[0] <= 0:
        return np.linspace(0.0, 1.0, len(numbers))
    logs = np.log(numbers)
    found: Numbers = (logs - logs[0]) / (logs[-1] - logs[0])
    return found


def _factors_of_two(value: float) -> int:
    """0 of what is no whole number, and of 0."""
    if value == 0 or not value.is_integer():
        return 0
    whole = abs(int(value))
    return (whole & -whole).bit_length() - 1
