"""Expected values: the kernel's reference and magnitude, called in float64 in the judge's process.

In: inputs of one case. Out: per output an `Expected`. The functions are the ones that the kernel's yaml
names.
"""

import importlib
from collections.abc import Callable
from typing import Any

import torch

from pipeline.checks.tolerance import Expected, Precision, expect
from pipeline.errors import ConfigError
from pipeline.records.kernel import Tolerance
from pipeline.records.problem import Problem
from pipeline.records.record import Record

Function = Callable[..., Any]


class Oracle(Record, frozen=True, kw_only=True, eq=False):
    """What knows the right answer and how far from it a result may be."""

    reference: Function
    magnitude: Function
    tolerance: Tolerance
    terms: Callable[[Problem], float]
    """How many terms are accumulated into one output, on a problem's dimensions."""

    def expected(self, problem: Problem, inputs: dict[str, torch.Tensor]) -> dict[str, Expected]:
        """Expected values of every output."""
        references = _outputs(self.reference, problem, inputs)
        magnitudes = _outputs(self.magnitude, problem, inputs)
        terms = max(self.terms(problem), 1.0)
        return {
            name: expect(
                references[name],
                magnitudes[name],
                Precision(
                    output=problem.tensors[name].dtype,
                    accumulate=self.tolerance.accumulate,
                    terms=terms,
                    factor=self.tolerance.factor,
                ),
            )
            for name in references
        }


def find_function(name: str) -> Function:
    """The callable behind `module:function`.

    Raises
    ------
    ConfigError
        There is no such module or function.
    """
    module, _, function = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"reference '{name}': expected module:function: {error}") from error
    if not callable(found):
        raise ConfigError(f"reference '{name}': expected a function, got {type(found).__name__}")
    return found  # type: ignore[no-any-return]


def _outputs(
    function: Function, problem: Problem, inputs: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Call with the inputs in declared order, in float64; outputs by name, their shapes checked."""
    exact = [tensor.to(torch.float64) if tensor.is_floating_point() else tensor for tensor in inputs.values()]
    result = function(*exact, **problem.scalars, **problem.attributes)
    tensors = result if isinstance(result, tuple | list) else (result,)
    names = problem.names("output")
    name = getattr(function, "__qualname__", "reference")
    if len(tensors) != len(names):
        raise ConfigError(
            f"{problem.kernel}: {name} returned {len(tensors)} tensors, expected {', '.join(names)}"
        )
    for output, tensor in zip(names, tensors, strict=True):
        if tuple(tensor.shape) != problem.shape(output):
            raise ConfigError(
                f"{problem.kernel}: {name} returned {output} of shape {tuple(tensor.shape)},"
                f" expected {problem.shape(output)} on {problem.dimensions}"
            )
    return {output: tensor.to(torch.float64) for output, tensor in zip(names, tensors, strict=True)}
