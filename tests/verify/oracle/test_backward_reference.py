"""The reference of a backward kernel: derived from the forward's, and checked against its slopes."""

import msgspec
import pytest
import torch

from pipeline.backends.package_calls import differentiated
from pipeline.records.configuration.kernel import GradientOf, Tensor
from pipeline.records.errors import ConfigError
from pipeline.records.planning.problem import Problem
from pipeline.verify.oracle.reference import Backward
from pipeline.verify.oracle.tolerance import deviation

DECLARED = GradientOf(kernel="gated", inputs=("x", "w"), upstream=("dy",))


def problem(rows=6, cols=5):
    """Gradients of a gate with a weight."""
    matrix, vector = ("rows", "cols"), ("cols",)
    tensors = {
        "x": Tensor(role="input", shape=matrix, dtype="float32"),
        "w": Tensor(role="input", shape=vector, dtype="float32"),
        "dy": Tensor(role="input", shape=matrix, dtype="float32"),
        "dx": Tensor(role="output", shape=matrix, dtype="float32"),
        "dw": Tensor(role="output", shape=vector, dtype="float32"),
    }
    return Problem(
        kernel="gated_backward",
        dimensions={"rows": rows, "cols": cols},
        tensors=tensors,
        scalars={"scale": 0.5},
        attributes={},
        element="float32",
    )


def gated(x, w, scale):
    """The forward's reference."""
    return scale * torch.sigmoid(x) * w


def inputs(of):
    """Normal numbers."""
    generator = torch.Generator().manual_seed(3)
    return {name: torch.randn(of.shape(name), generator=generator) for name in of.names("input")}


def right(given):
    """The gradients by hand."""
    y = torch.sigmoid(given["x"])
    return {
        "dx": 0.5 * y * (1 - y) * given["w"] * given["dy"],
        "dw": (0.5 * y * given["dy"]).sum(0),
    }


def test_expected_are_the_gradients():
    """Formulas written by hand lie within the bounds, and the bounds are those of rounding."""
    of = problem()
    given = inputs(of)
    expected = Backward(gated, DECLARED).expected(of, given)
    for name, values in right(given).items():
        assert deviation(values, expected[name]).passed
        assert not deviation(values * 1.0001, expected[name]).passed


def test_gradients_by_autograd_for_the_clock():
    """The function that is timed returns the same, in the order of the outputs."""
    of = problem()
    given = inputs(of)
    function = differentiated(gated, DECLARED, of.names("input"))
    found = function(*given.values(), **of.scalars)
    for got, wanted in zip(found, right(given).values(), strict=True):
        torch.testing.assert_close(got, wanted)


def test_no_rows():
    """A sum over nothing is 0."""
    of = problem(rows=0)
    expected = Backward(gated, DECLARED).expected(of, inputs(of))
    assert expected["dx"].reference.shape == (0, 5)
    assert expected["dw"].reference.eq(0).all()


def test_slopes_of_a_right_reference_agree():
    """Central differences along random directions."""
    of = problem()
    Backward(gated, DECLARED).check_slopes(of, inputs(of))


class _Wrong(torch.autograd.Function):
    """Forgets a factor on the way back."""

    @staticmethod
    def forward(ctx, x):
        """Square."""
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dy):
        """Should be 2 x dy."""
        (x,) = ctx.saved_tensors
        return x * dy


def test_a_reference_whose_gradient_is_wrong_is_refused():
    """It must not judge anything."""
    of = problem()
    with pytest.raises(ConfigError, match=r"gated's reference are not its slopes"):
        Backward(lambda x, w, scale: _Wrong.apply(x) * w * scale, DECLARED).check_slopes(of, inputs(of))


def test_gradient_of_another_type_than_its_output():
    """A line that names both."""
    of = problem()
    tensors = of.tensors | {"dw": Tensor(role="output", shape=("cols",), dtype="float16")}
    strange = msgspec.structs.replace(of, tensors=tensors)
    with pytest.raises(ConfigError, match=r"gradient of w is float32 .* but dw is float16"):
        Backward(gated, DECLARED).expected(strange, inputs(of))
