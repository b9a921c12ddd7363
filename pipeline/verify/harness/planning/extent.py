"""Measures how large a problem is on given sizes, on `meta` tensors, which have shapes and no memory.

In: a variant of a problem. Out: its `Extent`: shapes of the inputs, elements of the largest tensor, and
operations.
"""

import contextlib
import warnings
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from pipeline.records.record import Record
from pipeline.sandbox.models.model_problem import ProblemVariant
from pipeline.sandbox.torch_internals import TorchDispatchMode
from pipeline.verify.harness.runtime.decoding import leaves
from pipeline.verify.torch_internals import operator_name

Shape = tuple[int, ...]
Axes = frozenset[tuple[int, int]]
"""Numbers of operands, and axes of them, counted from the last one, which is 1."""


class Operands(Record, frozen=True, kw_only=True):
    """Of one elementwise operator."""

    operator: str
    expanded: Axes
    """Along which operands of one element meet longer ones."""
    several: Axes
    """Along which they have more than one element."""


class Extent(Record, frozen=True, kw_only=True):
    """What one call involves."""

    inputs: tuple[Shape, ...]
    """Of every tensor among the arguments."""
    parameters: tuple[Shape, ...]
    """Of the model's parameters and buffers."""
    elements: int
    """Of the largest tensor among inputs, parameters and outputs."""
    operations: int
    """Floating-point operations of matrix products and convolutions."""
    operators: int = 0
    """Operators that `Model` calls, many where it loops over steps; 0 where it did not run."""
    ran: bool
    """Whether `Model` ran without values."""
    operands: tuple[Operands, ...] = ()
    """Of its elementwise operators, in order."""

    def fits_by_chance(self, declared: "Extent") -> bool:
        """Whether operands that fit together on the declared sizes do only because they have one element.

        A slice of what became shorter, for example. Where sizes decide what is computed, nothing is known.
        """
        if [each.operator for each in self.operands] != [each.operator for each in declared.operands]:
            return False
        pairs = zip(self.operands, declared.operands, strict=True)
        return any(here.expanded & there.several for here, there in pairs)


def extent(variant: ProblemVariant) -> Extent:
    """Measure; ProblemError where the problem fails on these sizes."""
    inputs = _inputs(variant)
    parameters: list[torch.Tensor] = []
    outputs: list[torch.Tensor] = []
    operations, ran = 0, False
    elementwise = _Elementwise()
    # What cannot run without values (a copy of a mask into it, a branch on a sum) is measured without it.
    with contextlib.suppress(Exception), torch.device("meta"), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = variant.model(0, variant.init_arguments(0))
        parameters = [*model.parameters(), *model.buffers()]
        counter = FlopCounterMode(display=False)
        with counter, elementwise:
            outputs = tensors_of(model(*[_to_meta(each) for each in inputs]))
        operations, ran = counter.get_total_flops(), True
    found = [*tensors_of(inputs), *parameters, *outputs]
    return Extent(
        inputs=tuple(tuple(each.shape) for each in tensors_of(inputs)),
        parameters=tuple(tuple(each.shape) for each in parameters),
        elements=max((each.numel() for each in found), default=0),
        operations=operations,
        operators=elementwise.operators if ran else 0,
        ran=ran,
        operands=tuple(elementwise.found) if ran else (),
    )


class _Elementwise(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Inside, operators are counted, and elementwise ones of several tensors noted."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[Operands] = []
        self.operators = 0

    def __torch_dispatch__(
        self, function: Any, _types: Any, arguments: Any = (), keywords: Any = None
    ) -> Any:
        self.operators += 1
        result = function(*arguments, **(keywords or {}))
        shapes = [each.shape for each in arguments if isinstance(each, torch.Tensor)]
        if len(shapes) > 1 and isinstance(result, torch.Tensor) and _broadcast(shapes) == result.shape:
            axes = {
                (number, axis): (shape[-axis], result.shape[-axis])
                for number, shape in enumerate(shapes)
                for axis in range(1, len(shape) + 1)
            }
            expanded = frozenset(place for place, (size, whole) in axes.items() if size == 1 < whole)
            several = frozenset(place for place, (size, _) in axes.items() if size > 1)
            name = operator_name(function)
            self.found.append(Operands(operator=name, expanded=expanded, several=several))
        return result


def _broadcast(shapes: list[torch.Size]) -> torch.Size | None:
    try:
        return torch.Size(torch.broadcast_shapes(*shapes))  # type: ignore[no-untyped-call]
    except RuntimeError:
        return None


def extent_of_arguments(variant: ProblemVariant) -> Extent:
    """The same without what the model computes; ProblemError where the problem fails on these sizes."""
    inputs = tensors_of(_inputs(variant))
    parameters: list[torch.Tensor] = []
    with contextlib.suppress(Exception), torch.device("meta"):
        model = variant.model(0, variant.init_arguments(0))
        parameters = [*model.parameters(), *model.buffers()]
    return Extent(
        inputs=tuple(tuple(each.shape) for each in inputs),
        parameters=tuple(tuple(each.shape) for each in parameters),
        elements=max((each.numel() for each in (*inputs, *parameters)), default=0),
        operations=0,
        ran=False,
    )


def input_shapes(variant: ProblemVariant) -> tuple[Shape, ...]:
    """Shapes of the inputs alone; ProblemError where the problem fails on these sizes."""
    return tuple(tuple(each.shape) for each in tensors_of(_inputs(variant)))


def _inputs(variant: ProblemVariant) -> list[Any]:
    """On `meta` where the problem can draw them there, else for real."""
    with contextlib.suppress(Exception), torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return variant.inputs(0)
    return variant.inputs(0)


def _to_meta(value: Any) -> Any:
    return value.to("meta") if isinstance(value, torch.Tensor) else value


def tensors_of(value: Any) -> list[torch.Tensor]:
    """All tensors of nested lists, tuples and dicts, in order; of a dict by its keys."""
    return [each for each in leaves(value) if isinstance(each, torch.Tensor)]
