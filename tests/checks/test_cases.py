"""Cases: other data in the same shape, every distribution somewhere, prepared once."""

from concurrent.futures import ThreadPoolExecutor

from pipeline.checks.cases import CaseBook
from pipeline.checks.inputs import DISTRIBUTIONS
from pipeline.checks.shapes import Budget, plan
from tests.checks.build import PROBLEM
from tests.checks.simulated import oracle

SHAPES = plan(PROBLEM, Budget(elements=4096, edges=8), lambda _: True)


def book(seeds: tuple[int, ...] = (1, 2)) -> CaseBook:
    """All distributions."""
    return CaseBook(PROBLEM, oracle(), distributions=tuple(DISTRIBUTIONS), seeds=seeds)


def test_full() -> None:
    """Every distribution and seed on the workload's shape, and every other shape once."""
    cases = book().full(SHAPES)
    workload = [case for case in cases if case.shape == SHAPES[0]]
    assert {(case.distribution, case.seed) for case in workload} == {
        (distribution, seed) for distribution in DISTRIBUTIONS for seed in (1, 2)
    }
    assert tuple(case.shape for case in cases[len(workload) :]) == SHAPES[1:]
    assert len({case.label for case in cases}) == len(cases)


def test_sparse_still_meets_every_distribution() -> None:
    """Two inputs on the workload's shape, the others on shapes that have elements for them."""
    cases = book(seeds=(1,)).sparse(SHAPES)
    assert [case.shape == SHAPES[0] for case in cases[:3]] == [True, True, False]
    large = [case for case in cases if min(case.shape.dimensions.values()) > 1]
    assert {case.distribution for case in large} == set(DISTRIBUTIONS)


def test_prepared_once() -> None:
    """Threads that ask for the same case get the same tensors."""
    shared = book()
    case = shared.full(SHAPES)[0]
    with ThreadPoolExecutor(8) as pool:
        prepared = list(pool.map(shared.prepare, [case] * 8))
    assert all(one is prepared[0] for one in prepared)


def test_empty_outputs_are_told() -> None:
    """A case without elements judges nothing about values."""
    shared = book()
    empty = [shared.prepare(case).empty for case in shared.full(SHAPES)]
    assert sum(empty) == 1
