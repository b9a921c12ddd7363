"""A PyTorch function as a list of elementary steps: pointwise ones, and reductions of rows.

`torch.fx` traces the function, and small tensors `[rows, cols]` and vectors `[cols]` give the shapes; each
operation must be one of `POINTWISE` or `REDUCTIONS`.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.records.errors import ConfigError

if TYPE_CHECKING:
    import torch

ROWS, COLS = 5, 7
"""Of the tensors that a function is traced with: different primes, so that shapes tell what they are."""


class ValueShape(StrEnum):
    """What a value is, relative to a matrix."""

    MATRIX = "matrix"
    VECTOR = "vector"
    ROW = "row"
    """One value per row."""


class Form(NamedTuple):
    """An operation in the languages of sources; None where a language does not have it."""

    cpp: str
    triton: str | None


POINTWISE: dict[str, Form] = {
    "add": Form("{0} + {1}", "{0} + {1}"),
    "sub": Form("{0} - {1}", "{0} - {1}"),
    "mul": Form("{0} * {1}", "{0} * {1}"),
    "div": Form("{0} / {1}", "{0} / {1}"),
    "neg": Form("-{0}", "-{0}"),
    "abs": Form("std::fabs({0})", "tl.abs({0})"),
    "exp": Form("std::exp({0})", "tl.exp({0})"),
    "log": Form("std::log({0})", "tl.log({0})"),
    "sqrt": Form("std::sqrt({0})", "tl.sqrt_rn({0})"),
    "rsqrt": Form("1.0f / std::sqrt({0})", "1.0 / tl.sqrt_rn({0})"),
    "reciprocal": Form("1.0f / {0}", "1.0 / {0}"),
    "sin": Form("std::sin({0})", "tl.sin({0})"),
    "cos": Form("std::cos({0})", "tl.cos({0})"),
    "tanh": Form("std::tanh({0})", None),
    "sigmoid": Form("1.0f / (1.0f + std::exp(-{0}))", "1.0 / (1.0 + tl.exp(-{0}))"),
    "silu": Form("{0} / (1.0f + std::exp(-{0}))", "{0} / (1.0 + tl.exp(-{0}))"),
    "relu": Form("{0} < 0.0f ? 0.0f : {0}", "tl.where({0} < 0.0, 0.0, {0})"),
    "gelu": Form(
        "0.5f * {0} * std::erfc(-0.70710678f * {0})", "0.5 * {0} * (1.0 + tl.erf(0.7071067811865476 * {0}))"
    ),
    "maximum": Form(
        "{0} > {1} || {0} != {0} ? {0} : {1}", "tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)"
    ),
    "minimum": Form(
        "{0} < {1} || {0} != {0} ? {0} : {1}", "tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)"
    ),
}
REDUCTIONS = ("sum", "mean", "amax", "amin")
_SAME = {
    "truediv": "div",
    "divide": "div",
    "multiply": "mul",
    "subtract": "sub",
    "negative": "neg",
    "absolute": "abs",
}
_UNCHANGED = ("clone", "contiguous", "float")


class Step(NamedTuple):
    """One operation; arguments are names of earlier steps or inputs, or numbers."""

    name: str
    operation: str
    arguments: tuple[str | float, ...]
    shape: ValueShape

    @property
    def reduces(self) -> bool:
        """Whether it combines the elements of a row."""
        return self.operation in REDUCTIONS


class FunctionGraph(NamedTuple):
    """A function with its inputs and steps; the last step is the result."""

    inputs: dict[str, ValueShape]
    steps: tuple[Step, ...]

    def shape(self, name: str) -> ValueShape:
        """Of an input or a step."""
        return self.inputs.get(name) or next(step.shape for step in self.steps if step.name == name)


def trace(
    function: "Callable[..., torch.Tensor]", names: Sequence[str], vectors: Sequence[str]
) -> FunctionGraph:
    """The steps of a function of these inputs; `vectors` are those of shape [cols].

    Raises
    ------
    ConfigError
        It cannot be traced, or has an operation or a shape that is not known here.
    """
    import torch
    import torch.fx

    given = [torch.rand(COLS) + 0.5 if name in vectors else torch.rand(ROWS, COLS) + 0.5 for name in names]
    shapes: dict[str, tuple[int, ...]] = {}

    class Shapes(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> Any:
            value = super().run_node(n)
            shapes[n.name] = tuple(getattr(value, "shape", ()))
            return value

    try:
        traced = torch.fx.symbolic_trace(function)
        Shapes(traced).run(*given)
    except Exception as error:  # whatever the user's function raises
        line = str(error).strip().splitlines() or [type(error).__name__]
        raise ConfigError(f"the function cannot be traced with {', '.join(names)}: {line[0]}") from error
    return _Reader(names, vectors, shapes).read(traced.graph)


class _Reader:
    def __init__(
        self, names: Sequence[str], vectors: Sequence[str], shapes: dict[str, tuple[int, ...]]
    ) -> None:
        self._inputs = {name: ValueShape.VECTOR if name in vectors else ValueShape.MATRIX for name in names}
        self._shapes = shapes
        self._values: dict[str, str] = {}
        """Node of the graph -> what it is called here."""
        self._steps: list[Step] = []

    def read(self, graph: Any) -> FunctionGraph:
        waiting = list(self._inputs)
        for node in graph.nodes:
            if node.op == "placeholder":
                self._values[node.name] = waiting.pop(0)
            elif node.op == "output":
                result = node.args[0]
                if self._shapes.get(getattr(result, "name", "")) != (ROWS, COLS):
                    raise ConfigError("the function must return one tensor of the shape [rows, cols]")
            else:
                self._call(node)
        if not self._steps or self._steps[-1].shape is not ValueShape.MATRIX:
            raise ConfigError("the function must compute something for each element")
        return FunctionGraph(self._inputs, tuple(self._steps))

    def _call(self, node: Any) -> None:
        name = node.target if isinstance(node.target, str) else node.target.__name__
        operation = _SAME.get(name, name)
        if operation in _UNCHANGED:
            self._values[node.name] = self._values[node.args[0].name]
        elif operation == "softmax":
            self._softmax(node)
        elif operation in REDUCTIONS:
            self._reduction(node, operation)
        elif operation in ("pow", "square"):
            self._square(node)
        elif operation in POINTWISE and not _changes(node):
            self._add(node.name, operation, tuple(map(self._value, node.args)), self._shape(node))
        else:
            known = ", ".join((*POINTWISE, *REDUCTIONS, "pow(x, 2)", "softmax"))
            used = f".{node.args[1]}" if operation == "getattr" else operation
            raise ConfigError(f"the function uses {used}, which is not known here (known: {known})")

    def _reduction(self, node: Any, operation: str) -> None:
        dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
        kept = node.args[2] if len(node.args) > 2 else node.kwargs.get("keepdim", False)
        if dim not in (-1, 1, [-1], (-1,), [1], (1,)) or not kept:
            raise ConfigError(f"{operation}: expected dim=-1, keepdim=True: rows are reduced")
        self._add(node.name, operation, (self._value(node.args[0]),), ValueShape.ROW)

    def _softmax(self, node: Any) -> None:
        dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
        if dim not in (-1, 1):
            raise ConfigError(f"softmax: expected dim=-1, got {dim}")
        x, name = self._value(node.args[0]), node.name
        self._add(f"{name}_max", "amax", (x,), ValueShape.ROW)
        self._add(f"{name}_shifted", "sub", (x, f"{name}_max"), ValueShape.MATRIX)
        self._add(f"{name}_exp", "exp", (f"{name}_shifted",), ValueShape.MATRIX)
        self._add(f"{name}_sum", "sum", (f"{name}_exp",), ValueShape.ROW)
        self._add(name, "div", (f"{name}_exp", f"{name}_sum"), ValueShape.MATRIX)

    def _square(self, node: Any) -> None:
        if len(node.args) > 1 and node.args[1] != 2:
            raise ConfigError(f"pow: expected the exponent 2, got {node.args[1]}")
        x = self._value(node.args[0])
        self._add(node.name, "mul", (x, x), self._shape(node))

    def _add(self, node: str, operation: str, arguments: tuple[str | float, ...], shape: ValueShape) -> None:
        name = f"{node}_value" if node in self._inputs else node
        self._values[node] = name
        self._steps.append(Step(name, operation, arguments, shape))

    def _value(self, argument: Any) -> str | float:
        if isinstance(argument, bool | int | float):
            return float(argument)
        return self._values[argument.name]

    def _shape(self, node: Any) -> ValueShape:
        known = {
            (ROWS, COLS): ValueShape.MATRIX,
            (COLS,): ValueShape.VECTOR,
            (1, COLS): ValueShape.VECTOR,
            (ROWS, 1): ValueShape.ROW,
        }
        found = self._shapes[node.name]
        if found not in known:
            raise ConfigError(f"{node.name}: expected [rows, cols], [cols] or [rows, 1], got {list(found)}")
        return known[found]


def _changes(node: Any) -> bool:
    """Whether a keyword asks for something else than the plain operation."""
    return any(value not in (None, False, 1, "none") for value in node.kwargs.values())
