"""Expected values of declared kernels: the reference and the magnitude, called in float64.

In: inputs of one case. Out: per output an `Expected`. The functions are the ones that the kernel's yaml
names; for a backward kernel, expected values are the gradients of the forward kernel's reference
(`Backward`), whose slopes are compared with finite differences.
"""

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import torch

from pipeline.backends.package_calls import differentiated
from pipeline.records.configuration.kernel import DERIVED, GradientOf, Tolerance
from pipeline.records.errors import ConfigError
from pipeline.records.planning.problem import Problem
from pipeline.records.record import Record
from pipeline.sandbox.models.error_place import raised_at
from pipeline.sandbox.torch_internals import TorchDispatchMode
from pipeline.verify.oracle.exact import exact_expectation
from pipeline.verify.oracle.rounding.arithmetic import PRODUCTS
from pipeline.verify.oracle.rounding.expectation import Allowance, expectation
from pipeline.verify.oracle.rounding.gradients import differences, gradient_expectation
from pipeline.verify.oracle.rounding.wrapped_run import tensor_arguments
from pipeline.verify.oracle.tolerance import TF32_UNIT, Expected, Precision, expect, widened
from pipeline.verify.torch_internals import operator_name

Function = Callable[..., Any]


class ReferenceOracle(Record, frozen=True, kw_only=True, eq=False):
    """What knows the right answer and how far from it a result may be."""

    reference: Function
    magnitude: Function | None
    """None: the bound is sampled from the rounding errors of the reference's own operations."""
    tolerance: Tolerance
    gradient_of: GradientOf | None = None
    """The reference is that of a forward kernel, and what is expected are its gradients."""
    mixed_precision: bool = True
    """Of sampled bounds: see `expectation`."""
    tf32_products: bool = False
    """The same; of other bounds, if the reference multiplies float32."""
    terms: Callable[[Problem], float]
    """How many terms are accumulated into one output, on a problem's dimensions."""

    def expected(self, problem: Problem, inputs: dict[str, torch.Tensor]) -> dict[str, Expected]:
        """Expected values of every output."""
        if self.gradient_of is not None:
            backward = Backward(self.reference, self.gradient_of)
            found = backward.expected(problem, inputs, tf32_products=self.tf32_products)
            return {name: widened(each, self.tolerance.factor) for name, each in found.items()}
        if self.magnitude is None:
            return self._derived(problem, inputs)
        references = _outputs(self.reference, problem, inputs)
        magnitudes = _outputs(self.magnitude, problem, inputs)
        cut = self.tf32_products and self._multiplies_float32(problem, inputs)
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
                    operands=TF32_UNIT if cut else 0.0,
                ),
            )
            for name in references
        }

    def _multiplies_float32(self, problem: Problem, inputs: dict[str, torch.Tensor]) -> bool:
        with _Products() as products:
            _outputs(self.reference, problem, inputs)
        return products.found and any(tensor.dtype == torch.float32 for tensor in inputs.values())

    def exact(self, problem: Problem, inputs: dict[str, torch.Tensor]) -> dict[str, Expected]:
        """On integer inputs: what must come out bit for bit; the usual bound where sums are too large."""
        if self.magnitude is None:
            return self.expected(problem, inputs)
        references = _outputs(self.reference, problem, inputs)
        magnitudes = _outputs(self.magnitude, problem, inputs)
        accumulate = self.tolerance.accumulate
        found = {
            name: exact_expectation(
                references[name], magnitudes[name], output=problem.tensors[name].dtype, accumulate=accumulate
            )
            for name in references
        }
        exact = {name: expected for name, expected in found.items() if expected is not None}
        return exact if exact.keys() == found.keys() else self.expected(problem, inputs)

    def check(self, problem: Problem, inputs: dict[str, torch.Tensor]) -> None:
        """Once per kernel: is the reference of a backward kernel what finite differences say?

        Raises
        ------
        ConfigError
            It is not.
        """
        if self.gradient_of is not None:
            Backward(self.reference, self.gradient_of).check_slopes(problem, inputs)

    def _derived(self, problem: Problem, inputs: dict[str, torch.Tensor]) -> dict[str, Expected]:
        """From the reference in the workload's types, operation by operation."""
        constants = {**problem.scalars, **problem.attributes}
        call = functools.partial(self.reference, **constants)
        allowance = Allowance(mixed_precision=self.mixed_precision, tf32_products=self.tf32_products)
        sampled = expectation(call, tuple(inputs.values()), allowance=allowance)
        found = dict(zip(problem.names("output"), sampled, strict=True))
        for name, expected in found.items():
            got, wanted = tuple(expected.reference.shape), problem.shape(name)
            if got != wanted:
                raise _other_shape(problem, "the reference", name, got)
            if expected.dtype != problem.tensors[name].dtype:
                raise ConfigError(
                    f"{problem.kernel}: the reference returned {name} as {expected.dtype}, expected"
                    f" {problem.tensors[name].dtype}: a derived bound needs its type"
                )
        return {name: widened(expected, self.tolerance.factor) for name, expected in found.items()}


def find_magnitude(name: str) -> Function | None:
    """The callable behind a tolerance's magnitude; None where the bound is derived."""
    return None if name == DERIVED else find_function(name)


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
    return _located(found, name)


def _located(function: Function, name: str) -> Function:
    """The function, whose exceptions end with the line that raised them."""

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except Exception as error:
            if place := raised_at(error):
                error.add_note(f"{name}: {type(error).__name__}: {error}{place}")
            raise

    return call


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
            raise _other_shape(problem, name, output, tuple(tensor.shape))
    return {output: tensor.to(torch.float64) for output, tensor in zip(names, tensors, strict=True)}


def _other_shape(problem: Problem, function: str, output: str, got: tuple[int, ...]) -> ConfigError:
    declared = f"tensors.{output}.shape of {problem.kernel} is {problem.shape(output)}"
    return ConfigError(f"{declared} on {problem.dimensions}, but {function} returned {got}")


class _Products(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Inside: is something multiplied by a product of matrices or a convolution?"""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found = False

    def __torch_dispatch__(
        self, function: Any, _types: Any, arguments: Any = (), keywords: Any = None
    ) -> Any:
        self.found |= operator_name(function).rpartition("::")[2] in PRODUCTS
        return function(*arguments, **(keywords or {}))


class Backward:
    """A reference with what the yaml says of its gradients."""

    def __init__(self, reference: Function, declared: GradientOf) -> None:
        self._reference = reference
        self._declared = declared

    def expected(
        self, problem: Problem, inputs: Mapping[str, torch.Tensor], *, tf32_products: bool = False
    ) -> dict[str, Expected]:
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
        allowance = Allowance(tf32_products=tf32_products)
        found = gradient_expectation(function, arguments, upstream, allowance=allowance)
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
