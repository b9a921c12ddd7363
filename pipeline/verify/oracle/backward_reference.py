"""What a backward kernel should return: the gradients of a forward kernel's reference, derived, not written.

In: the forward's reference, and which inputs of the backward are its inputs and which the upstream gradients.
Out: their expected values with bounds, whether finite differences of the reference agree (`Backward`), and
the gradients as a function of its own for who times it (`differentiated`).
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch

from pipeline.backends.calling import differentiated
from pipeline.records.errors import ConfigError
from pipeline.records.kernel import GradientOf
from pipeline.records.problem import Problem
from pipeline.verify.oracle.rounding.gradients import differences, gradient_expectation
from pipeline.verify.oracle.rounding.wrapped_run import tensor_arguments
from pipeline.verify.oracle.tolerance import Expected, Precision, expect

Function = Callable[..., Any]


class Backward:
    """A reference with what the yaml says of its gradients."""

    def __init__(self, reference: Function, declared: GradientOf) -> None:
        self._reference = reference
        self._declared = declared

    def expected(self, problem: Problem, inputs: Mapping[str, torch.Tensor]) -> dict[str, Expected]:
        """By output's name: float64 gradients, and how far from them rounding may lead.

        Raises
        ------
        ConfigError
            A gradient does not have the shape or the type of its output.
        """
        function, arguments, upstream = self._split(problem, inputs)
        if any(not tensor.numel() for tensor in inputs.values()):
            return self._of_nothing(problem, inputs)
        wanted = tensor_arguments(function, arguments)
        found = gradient_expectation(function, arguments, upstream)
        places = {id(tensor): expected for tensor, expected in zip(wanted, found, strict=True)}
        results = {}
        for output, name in zip(problem.names("output"), self._declared.inputs, strict=True):
            expected = places[id(inputs[name])]
            got = (expected.dtype, tuple(expected.reference.shape))
            if got != (problem.tensors[output].dtype, problem.shape(output)):
                raise ConfigError(
                    f"{problem.kernel}: the gradient of {name} is {got[0]} of shape {got[1]}, but {output} is"
                    f" {problem.tensors[output].dtype} of shape {problem.shape(output)}"
                )
            results[output] = expected
        return results

    def _of_nothing(self, problem: Problem, inputs: Mapping[str, torch.Tensor]) -> dict[str, Expected]:
        """Without rows there is nothing to round: sums over them are exactly 0."""
        function = differentiated(self._reference, self._declared, problem.names("input"))
        exact = [item.double() if item.is_floating_point() else item for item in inputs.values()]
        gradients = function(*exact, **problem.scalars, **problem.attributes)
        results = {}
        for name, gradient in zip(problem.names("output"), gradients, strict=True):
            precision = Precision(output=problem.tensors[name].dtype, accumulate="float32", terms=1.0)
            results[name] = expect(gradient, torch.zeros_like(gradient), precision)
        return results

    def check_slopes(self, problem: Problem, inputs: Mapping[str, torch.Tensor]) -> None:
        """Compare with central differences along random directions, in float64.

        Raises
        ------
        ConfigError
            The gradients are not the slopes of the reference, so they cannot judge anything.
        """
        function, arguments, upstream = self._split(problem, inputs)
        agreement = differences(function, arguments, upstream)
        if not agreement.agrees:
            raise ConfigError(
                f"{problem.kernel}: the gradients of {self._declared.kernel}'s reference are not its slopes:"
                f" finite differences are {agreement.worst:.3g} times as far away as their step explains"
            )

    def _split(
        self, problem: Problem, inputs: Mapping[str, torch.Tensor]
    ) -> tuple[Function, tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
        upstream = self._declared.upstream
        function = functools.partial(self._reference, **problem.scalars, **problem.attributes)
        arguments = tuple(inputs[name] for name in problem.names("input") if name not in upstream)
        return function, arguments, tuple(inputs[name] for name in upstream)
