"""Cases: other data in the same shape, every distribution somewhere, prepared once."""

from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
import torch

from pipeline.records.configuration.kernel import Tensor
from pipeline.records.planning.problem import Problem
from pipeline.verify.harness.kernel_cases import KernelCase, KernelCaseSet
from pipeline.verify.harness.planning.shapes import Shape, ShapeBudget, plan
from pipeline.verify.oracle.random_inputs import DISTRIBUTIONS
from pipeline.verify.oracle.reference import ReferenceOracle
from pipeline.verify.oracle.tolerance import deviation
from tests.verify.harness.build import PROBLEM, TOLERANCE
from tests.verify.oracle.simulated import oracle

SHAPES = plan(PROBLEM, ShapeBudget(elements=4096, edges=8), lambda _: True)


def case_set(seeds: tuple[int, ...] = (1, 2)) -> KernelCaseSet:
    """All distributions."""
    return KernelCaseSet(PROBLEM, oracle(), distributions=tuple(DISTRIBUTIONS), seeds=seeds)


def test_full() -> None:
    """Every distribution and seed on the workload's shape, and every other shape once."""
    cases = case_set().full(SHAPES)
    workload = [case for case in cases if case.shape == SHAPES[0]]
    assert {(case.distribution, case.seed) for case in workload} == {
        (distribution, seed) for distribution in DISTRIBUTIONS for seed in (1, 2)
    }
    assert tuple(case.shape for case in cases[len(workload) :]) == SHAPES[1:]
    assert len({case.label for case in cases}) == len(cases)


def test_sparse_still_meets_every_distribution() -> None:
    """Three inputs on the workload's shape, the others on shapes that have elements and rows for them."""
    cases = case_set(seeds=(1,)).sparse(SHAPES)
    assert [case.shape == SHAPES[0] for case in cases[:4]] == [True, True, True, False]
    assert cases[2].distribution == "special"
    assert {case.distribution for case in cases} == set(DISTRIBUTIONS)
    large = [case for case in cases if min(case.shape.dimensions.values()) > 1]
    assert {case.distribution for case in large} == set(DISTRIBUTIONS) - {"constant"}


def test_prepared_once() -> None:
    """Threads that ask for the same case get the same tensors."""
    shared = case_set()
    case = shared.full(SHAPES)[0]
    with ThreadPoolExecutor(8) as pool:
        prepared = list(pool.map(shared.prepare, [case] * 8))
    assert all(one is prepared[0] for one in prepared)


def test_empty_outputs_are_told() -> None:
    """A case without elements judges nothing about values."""
    shared = case_set()
    empty = [shared.prepare(case).empty for case in shared.full(SHAPES)]
    assert sum(empty) == 1


@pytest.mark.parametrize("element", ["float32", "bfloat16"])
def test_integers_leave_no_room_for_errors(element: str) -> None:
    """A product in any order of summation gives the expected bits; a unit in the last place is wrong."""
    shape = Shape(edge="workload", dimensions={"M": 24, "N": 16, "K": 300})
    tensors = {
        "a": Tensor(role="input", shape=("M", "K"), dtype=element),
        "b": Tensor(role="input", shape=("K", "N"), dtype=element),
        "c": Tensor(role="output", shape=("M", "N"), dtype=element),
    }
    problem = Problem(
        kernel="matmul",
        dimensions=shape.dimensions,
        tensors=tensors,
        scalars={},
        attributes={},
        element=element,
    )
    product = ReferenceOracle(
        reference=lambda a, b: a @ b,
        magnitude=lambda a, b: a.abs() @ b.abs(),
        tolerance=msgspec.structs.replace(TOLERANCE, reduction="K"),
        terms=lambda problem: problem.dimensions["K"],
    )
    shared = KernelCaseSet(problem, product, distributions=("normal", "integers"), seeds=(1,))
    case = shared.prepare(KernelCase(shape=shape, distribution="integers", seed=1))
    a, b = (case.inputs[name].float() for name in ("a", "b"))
    halves = (a[:, :111] @ b[:111]) + (a[:, 111:] @ b[111:])
    got = halves.to(getattr(torch, element))
    assert deviation(got, case.expected["c"]).passed
    assert got.abs().max() > 1
    bits = got.view(torch.int32 if element == "float32" else torch.int16)
    bits[3, 5] ^= 1
    assert not deviation(got, case.expected["c"]).passed
