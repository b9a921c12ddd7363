"""The process over a lattice: what it expects near and far, and what counts as a distance."""

import numpy as np

from pipeline.search.gaussian_process import GaussianProcess, Posterior, expected_improvement, terms
from pipeline.search.spaces.lattice import Axis, lattice
from pipeline.search.spaces.search_space import Subspace
from tests.search.synthetic import WIDE

ONE = Subspace(
    implementation="cpp",
    values={"X": (1, 2, 4, 8, 16, 32, 64, 128)},
    default={"X": 1},
    constraints=(),
    constants={},
)


def normal(values: list[float]) -> np.ndarray:
    """Mean 0, variance 1, as the process wants them."""
    found = np.array(values)
    return (found - found.mean()) / found.std()


def test_it_knows_what_it_was_told_and_doubts_the_rest() -> None:
    """At a measured point its value and hardly any doubt; between two, between them; far away more doubt."""
    observed = np.array([[0], [2], [4]])
    values = normal([3.0, 1.0, 2.0])
    posterior = GaussianProcess(lattice(ONE), observed, values).predict(np.array([[0], [2], [3], [4], [7]]))
    assert np.all(np.abs(posterior.mean[[0, 1, 3]] - values) < 0.3)
    assert posterior.mean[1] < posterior.mean[0]
    assert posterior.deviation[4] > 2 * posterior.deviation[1]


def test_what_is_believed_takes_the_doubt_and_no_expectation() -> None:
    """A point that was chosen is not as interesting again, nor is what lies beside it."""
    process = GaussianProcess(lattice(ONE), np.array([[0], [7]]), normal([1.0, 2.0]))
    before = process.predict(np.array([[2], [3], [6]]))
    after = process.fantasize(1)
    assert np.array_equal(before.mean, after.mean)
    assert after.deviation[1] < 0.5 * before.deviation[1]
    assert np.all(after.deviation <= before.deviation + 1e-12)


def test_equal_values_are_no_reason_to_fail() -> None:
    """Only failures, say: all is as good as all else."""
    posterior = GaussianProcess(lattice(ONE), np.array([[0], [3]]), np.zeros(2)).predict(np.array([[1], [2]]))
    assert np.all(np.isfinite(posterior.mean)) and np.all(np.isfinite(posterior.deviation))


def test_how_a_tunable_counts() -> None:
    """Sizes by their logarithm; alignment only where it says more; names and pairs by differing alone."""
    assert len(terms(Axis("X", (1, 2, 4, 8)))) == 2
    size, _, aligned = terms(Axis("X", (32, 48, 64, 128)))
    assert np.allclose(size.columns[:, 0], [0.0, np.log(1.5) / np.log(4), 0.5, 1.0])
    assert (aligned.columns[:, 0] * 7).round().tolist() == [5, 4, 6, 7]
    assert len(terms(Axis("order", ("ij", "ji", "tiled")))) == 1
    assert len(terms(Axis("padding", (0, 1)))) == 1
    assert terms(Axis("stages", (0, 1, 3)))[0].columns[:, 0].tolist() == [0.0, 0.5, 1.0]


def test_improvement_is_the_expected_one() -> None:
    """As drawn: the mean of what lies below the least value."""
    drawn = np.random.default_rng(0).normal(0.3, 0.7, 400_000)
    found = expected_improvement(Posterior(np.array([0.3]), np.array([0.7])), 0.1)
    assert abs(found[0] - np.maximum(0.1 - drawn, 0).mean()) < 3e-3


def test_many_points_are_learned_from_in_part() -> None:
    """More than are fitted: still of the same mind as to where the best ones lie."""
    points = lattice(WIDE.subspaces[0])
    observed = points.vectors[np.random.default_rng(0).permutation(len(points.vectors))[:160]]
    losses = np.abs(observed[:, 0] - 5) + np.abs(observed[:, 1] - 3) + 0.0
    order = np.argsort(losses, kind="stable")
    posterior = GaussianProcess(points, observed[order], normal(losses[order].tolist())).predict(
        points.vectors
    )
    best = points.vectors[int(np.argmin(posterior.mean))]
    assert abs(best[0] - 5) + abs(best[1] - 3) <= 1
