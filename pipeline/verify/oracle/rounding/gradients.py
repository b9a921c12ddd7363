"""Expected gradients of a function, and how far rounding alone may lead away from them.

In: a function, its arguments, a gradient for each output. Out: per floating point argument and parameter an
`Expected`, from float64 autograd with rounding errors in forward and backward; and whether finite
differences agree with the float64 gradients.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from pipeline.records.errors import KernelmillError
from pipeline.records.record import Record
from pipeline.verify.oracle.rounding.expectation import SAMPLES, Allowance, sampled
from pipeline.verify.oracle.rounding.rounded_tensors import Noise, OperationMemory, Rounded, widen
from pipeline.verify.oracle.rounding.wrapped_run import Function, WrappedRun, tensor_arguments
from pipeline.verify.oracle.tolerance import Expected

_DISPLACEMENT = 2.0**-10  # of the scale of each argument
_STEP = 2.0**-16  # of the same: the error of a central difference is its square
_ENOUGH = 1e-3  # of a directional derivative's typical size


class NoGradient(KernelmillError):
    """No output depends on any argument in a way that can be differentiated."""


class GradientCall(NamedTuple):
    """What is differentiated."""

    function: Function
    arguments: Sequence[Any]
    output_gradients: Sequence[torch.Tensor]


class Agreement(Record, frozen=True, kw_only=True):
    """Finite differences along random directions against a gradient."""

    agrees: bool
    """In more than half of the directions, since one may cross a kink."""
    worst: float
    """Largest difference, as a share of what the step explains."""


def gradient_expectation(
    function: Function,
    arguments: Sequence[Any],
    output_gradients: Sequence[torch.Tensor],
    *,
    seed: int = 0,
    allowance: Allowance | None = None,
) -> tuple[Expected, ...]:
    """Expected gradients of `sum(output * output_gradient)`, in the order of `tensor_arguments`.

    `output_gradients` has one tensor per output tensor; those of integers are not looked at. An argument that
    nothing depends on has the gradient zero.

    Raises
    ------
    NoGradient
        There is nothing to differentiate, or an operator cannot be differentiated by one of the arguments.
    RandomReference
        Two equal calls return different values.
    """
    wanted = tensor_arguments(function, arguments)

    def call(memory: OperationMemory, noise: Noise | None) -> list[torch.Tensor]:
        try:
            run = WrappedRun(function, arguments, (memory, noise), gradients=True)
        except RuntimeError as error:
            if "not differentiable" not in str(error):
                raise
            raise NoGradient(f"{error} Detach it in `forward` (`x.detach()`).") from error
        leaves = [run.wrapper(item) for item in wanted]
        return _gradients(run, leaves, output_gradients)

    return sampled(call, samples=SAMPLES, seed=seed, allowance=allowance)


def differences(
    function: Function,
    arguments: Sequence[Any],
    output_gradients: Sequence[torch.Tensor],
    *,
    directions: int = 3,
    seed: int = 0,
) -> Agreement:
    """Whether float64 gradients (of `tensor_arguments`) are the slopes of the float64 function.

    Both are taken at slightly displaced arguments, so that no two elements of a coarse type are equal.
    """
    call = GradientCall(function, arguments, output_gradients)
    wanted = tensor_arguments(function, arguments)
    generator = torch.Generator().manual_seed(seed)
    displaced_by = [_direction(item, generator) * _DISPLACEMENT for item in wanted]
    place = {id(item): offset for item, offset in zip(wanted, displaced_by, strict=True)}
    run = WrappedRun(function, arguments, (OperationMemory(), None), gradients=True, displaced=place)
    found = _gradients(run, [run.wrapper(item) for item in wanted], output_gradients)
    gradients = [widen(item) for item in found]
    shares: list[float] = []
    for _ in range(directions):
        along = [_direction(item, generator) for item in wanted]
        slopes = [
            _slope(call, place, dict(zip(place, along, strict=True)), step) for step in (_STEP, _STEP / 2)
        ]
        products = [(gradient * item).flatten() for gradient, item in zip(gradients, along, strict=True)]
        shares.append(_share(products, slopes))
    agreeing = sum(share <= 1.0 for share in shares)
    return Agreement(agrees=2 * agreeing > directions, worst=max(shares, default=0.0))


def _share(products: list[torch.Tensor], slopes: list[tuple[float, float]]) -> float:
    (coarse, _), (fine, magnitude) = slopes
    slope = sum(float(item.sum()) for item in products)
    typical = math.sqrt(sum(float(item.square().sum()) for item in products))
    explained = _ENOUGH * typical + 4 * abs(coarse - fine) + 2.0**-46 * magnitude / _STEP
    return abs(fine - slope) / explained if explained else float(fine != slope)


def _gradients(
    run: WrappedRun, leaves: list[torch.Tensor], output_gradients: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    roots = [
        (output, run.arithmetic.wrap(gradient))
        for output, gradient in zip(run.tensors, output_gradients, strict=True)
        if isinstance(output, Rounded) and output.requires_grad
    ]
    if not roots or not leaves:
        raise NoGradient("no output depends on a floating point argument in a differentiable way")
    with run.active():
        found = torch.autograd.grad(
            [output for output, _ in roots],
            leaves,
            [gradient for _, gradient in roots],
            allow_unused=True,
        )
    return [
        run.arithmetic.wrap(torch.zeros(leaf.shape, dtype=leaf.dtype)) if item is None else item
        for leaf, item in zip(leaves, found, strict=True)
    ]


def _direction(item: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Random, on the scale of the tensor."""
    values = item.detach().double()
    finite = values[values.isfinite()]
    scale = float(finite.square().mean().sqrt()) if finite.numel() else 0.0
    return torch.randn(item.shape, generator=generator, dtype=torch.float64) * (scale or 1.0)


def _slope(
    call: GradientCall, place: dict[int, torch.Tensor], along: dict[int, torch.Tensor], step: float
) -> tuple[float, float]:
    """Central difference of the weighted sum of the outputs, and the sum of its terms' magnitudes."""
    totals: list[float] = []
    magnitude = 0.0
    for sign in (1.0, -1.0):
        displaced = {key: offset + along[key] * (sign * step) for key, offset in place.items()}
        run = WrappedRun(call.function, call.arguments, (OperationMemory(), None), displaced=displaced)
        terms = [
            (widen(output) * gradient.double()).flatten()
            for output, gradient in zip(run.tensors, call.output_gradients, strict=True)
            if isinstance(output, Rounded)
        ]
        totals.append(sum(float(item.sum()) for item in terms))
        magnitude = max(magnitude, sum(float(item.abs().sum()) for item in terms))
    return (totals[0] - totals[1]) / (2 * step), magnitude
