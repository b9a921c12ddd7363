"""A problem keeps the declared order, which is the order of the C ABI."""

import msgspec

from pipeline.records.configuration.kernel import Tensor
from pipeline.records.planning.problem import Problem
from pipeline.records.record import digest, to_json

PROBLEM = Problem(
    kernel="rms_norm",
    dimensions={"rows": 3, "cols": 5},
    tensors={
        "x": Tensor(role="input", shape=("rows", "cols"), dtype="float32"),
        "weight": Tensor(role="input", shape=("cols",), dtype="float32"),
        "y": Tensor(role="output", shape=("rows", "cols"), dtype="float32"),
    },
    scalars={"eps": 1e-6, "alpha": 2.0},
    attributes={},
    element="float32",
)


def test_json_keeps_the_order() -> None:
    """Canonical JSON sorts keys; a problem that is read back is called with the same order of arguments."""
    back = msgspec.json.decode(to_json(PROBLEM), type=Problem)
    assert back == PROBLEM
    assert list(back.tensors) == ["x", "weight", "y"]
    assert list(back.dimensions) == ["rows", "cols"]
    assert list(back.scalars) == ["eps", "alpha"]


def test_another_order_is_another_identity() -> None:
    """Swapped arguments are another C function, although the keys are the same."""
    swapped = msgspec.structs.replace(PROBLEM, order=(), dimensions={"cols": 5, "rows": 3})
    assert digest(swapped) != digest(PROBLEM)


def test_other_dimensions_keep_the_order() -> None:
    """A reduced shape is the same function on other numbers."""
    assert list(PROBLEM.with_dimensions({"cols": 7}).dimensions.items()) == [("rows", 3), ("cols", 7)]
