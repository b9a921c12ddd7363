"""Gradients of any function: bounds from float64 autograd, and slopes that agree with them."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from pipeline.verify.oracle.rounding.expectation import RandomReference
from pipeline.verify.oracle.rounding.gradients import NoGradient, differences, gradient_expectation
from pipeline.verify.oracle.rounding.wrapped_run import output_tensors, tensor_arguments
from pipeline.verify.oracle.tolerance import deviation
from tests.verify.oracle.rounding_cases import normal

FUNCTIONS: dict[str, tuple[Callable[..., object], tuple[torch.Tensor, ...]]] = {
    "softmax": (lambda x: x.softmax(-1), (normal(20, 100),)),
    "layer_norm": (nn.LayerNorm(100), (normal(20, 100),)),
    "rms_norm": (nn.RMSNorm(100), (normal(20, 100),)),
    "group_norm": (nn.GroupNorm(2, 4), (normal(3, 4, 50),)),
    "batch_norm": (nn.BatchNorm2d(4), (normal(3, 4, 5, 5),)),
    "mlp": (nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 9)), (normal(8, 64),)),
    "conv2d": (nn.Conv2d(3, 8, 3), (normal(2, 3, 8, 8),)),
    "conv_transpose2d": (nn.ConvTranspose2d(3, 8, 3, stride=2), (normal(2, 3, 8, 8),)),
    "attention": (
        F.scaled_dot_product_attention,
        (normal(2, 2, 32, 16),) * 1 + (normal(2, 2, 32, 16, seed=1), normal(2, 2, 32, 16, seed=2)),
    ),
    "activations": (
        lambda x: F.silu(x) + F.mish(x) + F.softplus(x) + F.elu(x) + torch.tanh(x),
        (normal(20, 50),),
    ),
    "cross_entropy": (lambda x: F.cross_entropy(x, torch.arange(20)), (normal(20, 30),)),
    "pools": (lambda x: (F.max_pool2d(x, 2), F.avg_pool2d(x, 2)), (normal(2, 3, 8, 8),)),
    "unused": (lambda x, y: x * 2, (normal(3, 3), normal(4, 4))),
    "integers too": (lambda x: torch.topk(x, 3), (normal(20, 30),)),
}


def output_gradients(
    function: Callable[..., object], arguments: tuple[torch.Tensor, ...]
) -> list[torch.Tensor]:
    """One per output."""
    with torch.no_grad():
        outputs = output_tensors(function(*arguments))
    return [normal(*item.shape, seed=9).to(item.dtype) for item in outputs]


def eager(
    function: Callable[..., object], arguments: tuple[torch.Tensor, ...], weights: list[torch.Tensor]
) -> list[torch.Tensor]:
    """PyTorch's own gradients, zeros where there are none."""
    leaves = [item.clone().requires_grad_() for item in arguments]
    outputs = output_tensors(function(*leaves))
    pairs = [(item, weight) for item, weight in zip(outputs, weights, strict=True) if item.requires_grad]
    wanted = tensor_arguments(function, leaves)
    found = torch.autograd.grad([a for a, _ in pairs], wanted, [b for _, b in pairs], allow_unused=True)
    return [torch.zeros_like(a) if b is None else b for a, b in zip(wanted, found, strict=True)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_pytorch_pass(name: str) -> None:
    """Eager gradients are within the bounds; zeros and doubled ones are not; slopes agree."""
    function, arguments = FUNCTIONS[name]
    weights = output_gradients(function, arguments)
    expected = gradient_expectation(function, arguments, weights)
    found = eager(function, arguments, weights)
    assert len(expected) == len(found)
    for gradient, wanted in zip(found, expected, strict=True):
        assert deviation(gradient, wanted).share < 0.6
        if wanted.reference.abs().max() > 0:
            assert not deviation(torch.zeros_like(gradient), wanted).passed
            assert not deviation(gradient * 1.01, wanted).passed
    assert differences(function, arguments, weights).agrees


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_in_16_bits(dtype: torch.dtype) -> None:
    """A chain of linear, gelu and linear, in the model's own type."""
    module = FUNCTIONS["mlp"][0]
    assert isinstance(module, nn.Module)
    half = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 9)).to(dtype)
    arguments = (normal(8, 64).to(dtype),)
    weights = output_gradients(half, arguments)
    expected = gradient_expectation(half, arguments, weights)
    for gradient, wanted in zip(eager(half, arguments, weights), expected, strict=True):
        assert deviation(gradient, wanted).share < 1
        assert not deviation(gradient * 1.2, wanted).passed


class Doubled(torch.autograd.Function):
    """A square whose author forgot that the derivative of x^2 is 2 x."""

    @staticmethod
    def forward(context: object, x: torch.Tensor) -> torch.Tensor:
        """x^2."""
        context.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(context: object, gradient: torch.Tensor) -> torch.Tensor:
        """Half of the right one."""
        (x,) = context.saved_tensors
        return gradient * x


def test_differences_find_a_wrong_backward() -> None:
    """A reference whose own backward is wrong is no reference."""
    x = normal(5, 5)
    assert not differences(Doubled.apply, (x,), [torch.ones(5, 5)]).agrees


def test_nothing_to_differentiate() -> None:
    """Outputs without a gradient are an error of their own kind."""
    x = normal(5, 5)
    with pytest.raises(NoGradient, match="no output depends"):
        gradient_expectation(lambda x: x.argmax(-1), (x,), [torch.ones(5)])


def test_an_argument_without_a_gradient() -> None:
    """An operator that PyTorch cannot differentiate by one of its arguments: the problem says what to do."""
    logits, weight, target = normal(5, 4), normal(4).abs(), torch.tensor([0, 1, 2, 3, 0])
    loss = torch.nn.functional.cross_entropy
    with pytest.raises(NoGradient, match="Detach it"):
        gradient_expectation(lambda x, w: loss(x, target, w), (logits, weight), [torch.ones(())])
    found = gradient_expectation(lambda x, w: loss(x, target, w.detach()), (logits, weight), [torch.ones(())])
    assert not found[1].reference.any()


def test_random_functions_have_no_gradient() -> None:
    """Dropout in training has no single right one."""
    with pytest.raises(RandomReference):
        gradient_expectation(nn.Dropout(), (normal(5, 5),), [torch.ones(5, 5)])


def test_ties_are_not_kinks() -> None:
    """Equal elements of a coarse type do not confuse the differences, which are taken beside them."""
    x = torch.randint(0, 3, (20, 30)).float()
    assert differences(lambda x: torch.topk(x, 3).values, (x,), [torch.ones(20, 3)]).agrees
