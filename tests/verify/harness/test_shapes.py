"""Shapes: affordable, on the edges, and inside of what a variant promises."""

import math

import msgspec
import pytest

from pipeline.records.configuration.kernel import Tensor
from pipeline.records.planning.problem import Problem
from pipeline.verify.harness.planning.shapes import EDGES, ShapeBudget, largest_tensor, plan, scalings
from tests.verify.harness.build import PROBLEM

SOFTMAX = PROBLEM.with_dimensions({"rows": 32768, "cols": 1024})
MATMUL = Problem(
    kernel="matmul",
    dimensions={"M": 512, "N": 14336, "K": 4096},
    tensors={
        "a": Tensor(role="input", shape=("M", "K"), dtype="float32", layout="row_strided"),
        "b": Tensor(role="input", shape=("K", "N"), dtype="float32", layout="row_strided"),
        "c": Tensor(role="output", shape=("M", "N"), dtype="float32"),
    },
    scalars={},
    attributes={},
    element="float32",
)
PACKED = msgspec.structs.replace(
    MATMUL,
    tensors=MATMUL.tensors
    | {
        "b": Tensor(role="input", shape=("ceil_div(K, 2)", "N"), dtype="uint8", below=256),
        "scales": Tensor(role="input", shape=("ceil_div(K, group)", "N"), dtype="float32"),
    },
    attributes={"group": 128},
)
PACKING = msgspec.structs.replace(
    MATMUL,
    dimensions={"N": 14336, "K": 4096},
    tensors={
        "a": Tensor(role="input", shape=("N", "K"), dtype="float32"),
        "b": Tensor(role="output", shape=("ceil_div(K, 2)", "N"), dtype="uint8"),
    },
)
AWKWARD = MATMUL.with_dimensions({"M": 1, "N": 251, "K": 509})
BUDGET = ShapeBudget(elements=1 << 18, edges=len(EDGES))


def anything(dimensions: dict[str, int]) -> bool:
    """No constraint."""
    return True


@pytest.mark.parametrize(
    "problem",
    [SOFTMAX, MATMUL, PACKED, PACKING, AWKWARD],
    ids=["softmax", "matmul", "packed", "packing", "awkward"],
)
def test_shapes_are_affordable_and_within_the_workload(problem: Problem) -> None:
    """No shape has more elements than allowed, and no dimension exceeds the workload's."""
    shapes = plan(problem, BUDGET, anything)
    assert shapes[0].edge == "workload"
    for shape in shapes:
        assert largest_tensor(problem, shape.dimensions) <= BUDGET.elements
        assert all(shape.dimensions[name] <= size for name, size in problem.dimensions.items())
    seen = [msgspec.json.encode((shape.dimensions, shape.padded)) for shape in shapes]
    assert len(set(seen)) == len(seen)


def test_axes_that_are_formulas() -> None:
    """Over dimensions and attributes; they change with the dimensions."""
    odd = PACKED.with_dimensions({"N": 3, "K": 129})
    assert odd.shape("b") == (65, 3)
    assert odd.shape("scales") == (2, 3)
    assert largest_tensor(PACKED, {"M": 1, "N": 3, "K": 129}) == 195


def test_edges_of_an_output_that_has_a_formula() -> None:
    """Its dimensions count: there is nothing to do without N, and it is the last axis as well."""
    shapes = {shape.edge: shape.dimensions for shape in plan(PACKING, BUDGET, anything)}
    assert shapes["empty"]["N"] == 0
    assert shapes["one_row"]["N"] == 1
    assert shapes["few_rows"]["N"] == 3


def test_edges_are_what_they_are_called() -> None:
    """Ones, primes, above a power of two, one below, nothing, one row, one column, few columns, few rows."""
    shapes = {shape.edge: shape for shape in plan(MATMUL, BUDGET, anything)}
    assert shapes.keys() == {"workload", *EDGES}
    assert set(shapes["ones"].dimensions.values()) == {1}
    primes = list(shapes["prime"].dimensions.values())
    assert all(all(n % d for d in range(2, math.isqrt(n) + 1)) for n in primes)
    assert len(set(primes)) == 3
    assert all((size - 1).bit_count() == 1 for size in shapes["above"].dimensions.values())
    assert all((size + 1).bit_count() == 1 for size in shapes["below"].dimensions.values() if size > 447)
    assert shapes["empty"].dimensions["M"] == 0
    assert shapes["one_row"].dimensions["M"] == 1
    assert shapes["one_column"].dimensions["N"] == 1
    assert shapes["narrow"].dimensions["K"] == shapes["narrow"].dimensions["N"] == 3
    assert shapes["narrow"].dimensions["M"] > 3
    assert shapes["few_rows"].dimensions["M"] == 3
    assert shapes["strided"].padded and not shapes["workload"].padded


def test_what_indices_count_along_is_not_empty() -> None:
    """There would be no value for them; without indices there may be nothing to index."""
    tensors = {
        "token": Tensor(role="input", shape=("T",), dtype="int64", below="V"),
        "dweight": Tensor(role="output", shape=("V", "D"), dtype="float32"),
    }
    scattering = msgspec.structs.replace(MATMUL, dimensions={"T": 64, "V": 512, "D": 64}, tensors=tensors)
    assert "empty" not in {shape.edge for shape in plan(scattering, BUDGET, anything)}
    gathering = msgspec.structs.replace(
        scattering,
        tensors=tensors | {"dweight": Tensor(role="output", shape=("T", "D"), dtype="float32")},
    )
    assert "empty" in {shape.edge for shape in plan(gathering, BUDGET, anything)}


def test_constraints_keep_their_dimension() -> None:
    """Where a block must hold a whole row, the rows are fewer instead of shorter."""
    wide = PROBLEM.with_dimensions({"rows": 64, "cols": 65536})
    shapes = plan(wide, BUDGET, lambda dimensions: dimensions["cols"] == 65536 or dimensions["rows"] == 0)
    assert shapes[0].dimensions == {"rows": 4, "cols": 65536}
    assert all(shape.dimensions["cols"] == 65536 or 0 in shape.dimensions.values() for shape in shapes)


def test_the_workload_is_the_last_resort() -> None:
    """There is always a shape: the workload's own dimensions are allowed by construction."""
    shapes = plan(MATMUL, BUDGET, lambda dimensions: dimensions == MATMUL.dimensions)
    assert [shape.dimensions for shape in shapes] == [MATMUL.dimensions]


def test_few_rows_for_the_interpreter() -> None:
    """Rows of a row-wise kernel are cut; a product keeps its proportions."""
    budget = ShapeBudget(elements=16384, rows=32, edges=8)
    assert scalings(SOFTMAX, budget)[0] == {"rows": 32, "cols": 512}
    assert scalings(MATMUL, budget)[0] == {"M": 128, "N": 112, "K": 128}


def test_edge_count() -> None:
    """A preset takes the first edges only."""
    few = ShapeBudget(elements=1 << 18, edges=3)
    assert [shape.edge for shape in plan(SOFTMAX, few, anything)] == ["workload", "strided", "above", "ones"]
