"""A problem in the format of KernelBench. In: its file. Out: models, their inputs, and the sizes it names.

`Model`, `get_inputs()` and `get_init_inputs()` as in KernelBench; `get_input_groups()`, `get_tolerance()`
and `check_grad` if the problem defines them. Module-level integers are sizes, and so are integers that the
functions which make inputs and arguments spell out: the source runs again for each replacement, so that
values derived from a size (`hidden = 4 * features`) follow. Every mistake of a problem is reported in one
line (`ProblemError`).
"""

import ast
import inspect
import itertools
import random
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import numpy
import torch

from pipeline.records.errors import KernelmillError
from pipeline.records.record import Record
from pipeline.sandbox.models.error_place import raised_at

_NUMBERS = itertools.count()
_ON_HOST_ONLY = not (torch.version.cuda or torch.version.hip or torch.version.xpu)
"""Whether this is PyTorch's CPU build."""


class ProblemError(KernelmillError):
    """A problem cannot be judged on; says what is wrong with it."""


class DeclaredTolerance(Record, frozen=True, kw_only=True):
    """A bound that the problem declares in addition to the derived one."""

    rtol: float
    atol: float
    reason: str
    """Empty where the problem gives none."""


class ModelProblem:
    """One problem; every method runs the problem's own code."""

    def __init__(self, path: Path) -> None:
        self._source = ProblemSource(path)
        self.sizes = self._source.sizes
        self.declared = self.variant({})
        self.tolerance = self._tolerance()
        self.check_gradients = bool(getattr(self.declared.module, "check_grad", False))

    def variant(self, sizes: Mapping[str, int]) -> "ProblemVariant":
        """The problem with other sizes."""
        module = _guarded(
            "importing it",
            lambda: self._source.module(sizes, f"kernelmill_problem_{next(_NUMBERS)}"),
        )
        for name in ("Model", "get_inputs"):
            if not callable(getattr(module, name, None)):
                raise ProblemError(f"no {name}, expected class Model and function get_inputs")
        return ProblemVariant(module)

    def _tolerance(self) -> DeclaredTolerance | None:
        function = getattr(self.declared.module, "get_tolerance", None)
        if function is None:
            return None
        return _tolerance(_guarded("get_tolerance()", function), inspect.getdoc(function) or "")


class ProblemVariant:
    """The problem with one choice of sizes."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module = module

    def init_arguments(self, seed: int) -> list[Any]:
        """Positional arguments of `Model`, drawn under a seed."""
        function = getattr(self.module, "get_init_inputs", None)
        if function is None:
            return []
        given = _guarded("get_init_inputs()", lambda: _seeded(seed, function))
        return _positional(given, self.module.Model.__init__, "get_init_inputs()")

    def inputs(self, seed: int) -> list[Any]:
        """Positional arguments of `forward`, drawn under a seed."""
        given = _guarded("get_inputs()", lambda: _seeded(seed, self.module.get_inputs))
        return [_detached(each) for each in _positional(given, self.module.Model.forward, "get_inputs()")]

    def groups(self, seed: int) -> list[list[Any]] | None:
        """The problem's own groups of inputs; None where it defines none."""
        function = getattr(self.module, "get_input_groups", None)
        if function is None:
            return None
        found = _guarded("get_input_groups()", lambda: _seeded(seed, function))
        if not isinstance(found, list | tuple) or not found:
            raise ProblemError(f"get_input_groups(): got {_kind(found)}, expected a list of argument lists")
        forward = self.module.Model.forward
        return [
            [_detached(each) for each in _positional(group, forward, f"get_input_groups()[{number}]")]
            for number, group in enumerate(found)
        ]

    def model(self, seed: int, arguments: Sequence[Any]) -> torch.nn.Module:
        """`Model(*arguments)` under a seed, in the training mode that it begins in."""
        model = _guarded("Model(*get_init_inputs())", lambda: seeded(seed, self.module.Model, *arguments))
        if not isinstance(model, torch.nn.Module):
            raise ProblemError(f"Model: got {_kind(model)}, expected a torch.nn.Module")
        return model


def seeded(seed: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call under a seed of all random states, as the candidate's process does when it constructs."""
    random.seed(seed)
    numpy.random.seed(seed % (1 << 32))
    _seed_torch(seed)
    return function(*arguments)


def _seed_torch(seed: int) -> None:
    """`torch.manual_seed`, which takes a millisecond to keep a stack trace for each kind of absent device."""
    if _ON_HOST_ONLY:
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def _seeded(seed: int, function: Callable[..., Any]) -> Any:
    with torch.no_grad():
        return seeded(seed, function)


def _guarded(what: str, work: Callable[[], Any]) -> Any:
    """What the problem's code raises becomes one line."""
    try:
        return work()
    except ProblemError:
        raise
    except MemoryError as error:
        raise ProblemError(f"{what}: out of memory") from error
    except (Exception, SystemExit) as error:
        raise ProblemError(f"{what} raises {describe(error)}") from error


def describe(error: BaseException) -> str:
    """An exception as one short line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = f"{type(error).__name__}: {lines[0] if lines else ''}".rstrip(": ")
    return f"{reason[:300]}{raised_at(error)}"


def _positional(given: Any, function: Callable[..., Any], what: str) -> list[Any]:
    """A list, a tuple, one tensor or a dict of keywords as positional arguments."""
    if isinstance(given, list | tuple):
        return list(given)
    if isinstance(given, torch.Tensor):
        return [given]
    if not isinstance(given, dict):
        raise ProblemError(f"{what}: got {_kind(given)}, expected a list of arguments")
    try:
        bound = inspect.signature(function).bind(None, **given)
    except (TypeError, ValueError) as error:
        raise ProblemError(f"{what}: does not fit Model: {error}") from error
    bound.apply_defaults()
    if bound.kwargs:
        names = ", ".join(bound.kwargs)
        raise ProblemError(f"{what}: {names} can only be given by name, expected positional arguments")
    return list(bound.args[1:])


def _detached(value: Any) -> Any:
    """The same with plain tensors on the host in the place of parameters."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu() if value.is_cuda else value.detach()
    if isinstance(value, list):
        return [_detached(each) for each in value]
    if type(value) is tuple:
        return tuple(_detached(each) for each in value)
    if isinstance(value, dict):
        return {key: _detached(each) for key, each in value.items()}
    return value


def _tolerance(given: Any, documented: str) -> DeclaredTolerance:
    """A dict, a pair with or without a reason, or one number for both."""
    if isinstance(given, int | float) and not isinstance(given, bool):
        parts: dict[str, Any] = {"rtol": given, "atol": given}
    elif isinstance(given, list | tuple) and 2 <= len(given) <= 3:
        parts = dict(zip(("rtol", "atol", "reason"), given, strict=False))
    elif isinstance(given, dict):
        parts = given
    else:
        raise ProblemError(f"get_tolerance(): got {_kind(given)}, expected rtol, atol and a reason")
    numbers = {}
    for name in ("rtol", "atol"):
        value = parts.get(name, 0.0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise ProblemError(f"get_tolerance(): {name} is {value!r}, expected a number of at least 0")
        numbers[name] = float(value)
    reason = " ".join(str(parts.get("reason") or documented).split())
    return DeclaredTolerance(rtol=numbers["rtol"], atol=numbers["atol"], reason=reason)


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__


_CONSTANT = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)


_MAKERS = ("get_inputs", "get_input_groups", "get_init_inputs")
_SPELLED_OUT_AT_LEAST = 4
"""Smaller integers are axes, strides, channels of an image."""
Places = dict[str, tuple[list[ast.expr], int]]


class ModuleSize(Record, frozen=True, kw_only=True):
    """One positive integer that the module gives a name: `rows`, or `shape[1]` for a part of a tuple.

    `24` is what its functions spell out as 24, wherever they do: equal numbers are one size.
    """

    name: str
    value: int

    @property
    def named(self) -> bool:
        """Whether the module gives it a name."""
        return not self.name.isdigit()


class ProblemSource:
    """The source of a problem; SyntaxError where it is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._text = path.read_bytes()
        found = _places(ast.parse(self._text, filename=str(path)))
        self.sizes = tuple(ModuleSize(name=name, value=value) for name, (_, value) in found.items())

    def module(self, values: Mapping[str, int], name: str) -> types.ModuleType:
        """Run the source with other values of its sizes; its folder is where it imports from first."""
        tree = ast.parse(self._text, filename=str(self.path))
        known = _places(tree)
        places = {id(place): value for size, value in values.items() for place in known[size][0]}
        for bound in _bounds(tree, known):
            if bound.size in values:
                places |= bound.replaced(known[bound.size][1], values[bound.size])
        changed: ast.Module = _Replacement(places).visit(tree)
        if not torch.cuda.is_available():
            changed = _OnHost().visit(changed)
        ast.fix_missing_locations(changed)
        module = types.ModuleType(name)
        module.__file__ = str(self.path)
        sys.modules[name] = module  # dataclasses and pickles look it up there
        folder = str(self.path.parent)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        exec(compile(changed, str(self.path), "exec"), module.__dict__)
        return module


class _Replacement(ast.NodeTransformer):
    """Puts integers in the place of expressions, by identity."""

    def __init__(self, places: Mapping[int, int]) -> None:
        self._places = places

    def visit(self, node: ast.AST) -> Any:
        if id(node) in self._places:
            return ast.copy_location(ast.Constant(self._places[id(node)]), node)
        return self.generic_visit(node)


_DEVICE = re.compile(r"cuda(:\d+)?")


class _OnHost(ast.NodeTransformer):
    """Has the host stand in for a device that the problem names: `"cuda"`, `.cuda()`."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """As `"cuda:0"`, which may be of another number."""
        is_device = isinstance(node.value, str) and _DEVICE.fullmatch(node.value) is not None
        return ast.copy_location(ast.Constant("cpu"), node) if is_device else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Of a tensor or a module."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "cuda":
            node.func.attr, node.args, node.keywords = "cpu", [], []
        return node


def _places(tree: ast.Module) -> Places:
    """Where all sizes stand, with their values."""
    named: Places = {name: ([place], value) for name, (place, value) in _constants(tree).items()}
    found = named | _spelled_out(tree)
    taken = {id(place) for bound in _bounds(tree, found) for place in (bound.low, bound.high)}
    kept = {
        name: ([place for place in places if id(place) not in taken], value)
        for name, (places, value) in found.items()
    }
    return {name: each for name, each in kept.items() if each[0]}


class _Bound(NamedTuple):
    """`low` and `high` of integers up to a size, that one included: lengths within a tensor's axis."""

    size: str
    low: Any
    """An `ast.Constant`, as `high`; None where it is no number."""
    high: Any

    def replaced(self, declared: int, value: int) -> dict[int, int]:
        """What they are if the size has a smaller value, by identity; a larger one they fit as they are."""
        if value >= declared:
            return {}
        found = {id(self.high): value + 1}
        if self.low is not None and self.low.value > 0:
            found[id(self.low)] = max(1, self.low.value * value // declared)
        return found


def _bounds(tree: ast.Module, sizes: Places) -> Iterator[_Bound]:
    """Of `randint` in the functions that make inputs, where a number spells out the size and one."""
    above = {value + 1: name for name, (_, value) in sizes.items()}
    calls = [each for maker in _makers(tree) for each in ast.walk(maker) if isinstance(each, ast.Call)]
    limits = [_limits(each) for each in calls if getattr(each.func, "attr", None) == "randint"]
    highs = {id(high) for _, high in limits}
    # A number that stands elsewhere, too, is a size of its own: of classes, say.
    elsewhere = {value for places, value in sizes.values() if any(id(each) not in highs for each in places)}
    for low, high in limits:
        if _is_number(high) and high.value in above and high.value not in elsewhere:
            yield _Bound(above[high.value], low if _is_number(low) else None, high)


def _limits(call: ast.Call) -> tuple[Any, Any]:
    """Where `randint` begins, and where it ends; None for what is not given."""
    given: dict[str | None, Any] = {each.arg: each.value for each in call.keywords}
    numbers = [each for each in call.args[:2] if _is_number(each)]
    low = numbers[0] if len(numbers) == 2 else None
    return given.get("low", low), given.get("high", numbers[-1] if numbers else None)


def _is_number(expression: Any) -> TypeGuard[Any]:
    return isinstance(expression, ast.Constant) and type(expression.value) is int


def _makers(tree: ast.Module) -> list[ast.FunctionDef]:
    found = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name in _MAKERS]
    return sorted(found, key=lambda each: _MAKERS.index(each.name))


def _spelled_out(tree: ast.Module) -> Places:
    """Integers in the functions that make inputs and arguments, in the order of the source.

    None that stands elsewhere, too: 32 may be the block of a format, which `Model` takes for granted.
    """
    makers = _makers(tree)
    taken = {place.value for each in tree.body if each not in makers for place in _numbers(each)}
    found: Places = {}
    for maker in makers:
        for place in sorted(_numbers(maker), key=lambda each: (each.lineno, each.col_offset)):
            if place.value >= _SPELLED_OUT_AT_LEAST and place.value not in taken:
                found.setdefault(str(place.value), ([], place.value))[0].append(place)
    return found


def _numbers(statement: ast.stmt) -> list[Any]:
    """Places of integers."""
    return [each for each in ast.walk(statement) if _is_number(each)]


def _constants(tree: ast.Module) -> dict[str, tuple[ast.expr, int]]:
    """Expressions of positive integers that are bound once at the top level, by name."""
    found: dict[str, tuple[ast.expr, int]] = {}
    bound: list[str] = []
    for statement in tree.body:
        for name, value in _assignments(statement):
            bound.append(name)
            if isinstance(value, ast.Tuple | ast.List):
                parts = [(f"{name}[{index}]", part) for index, part in enumerate(value.elts)]
            else:
                parts = [(name, value)]
            for part, expression in parts:
                number = _integer(expression)
                if number is not None and number > 0:
                    found[part] = (expression, number)
    return {part: each for part, each in found.items() if bound.count(part.partition("[")[0]) == 1}


def _assignments(statement: ast.stmt) -> list[tuple[str, ast.expr]]:
    """`n = 4`, `n: int = 4`, `n, m = 4, 8` as pairs of name and expression."""
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        target: ast.expr = statement.target
        value = statement.value
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
    else:
        return []
    if isinstance(target, ast.Name):
        return [(target.id, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = zip(target.elts, value.elts, strict=True)
        return [(name.id, each) for name, each in pairs if isinstance(name, ast.Name)]
    return []


def _integer(expression: ast.expr) -> int | None:
    """The value of an expression of integers only, such as `16 * 1024`."""
    nodes = list(ast.walk(expression))
    if not all(isinstance(node, _CONSTANT) for node in nodes) or any(
        isinstance(node, ast.Constant) and type(node.value) is not int for node in nodes
    ):
        return None
    if any(isinstance(node, ast.Pow | ast.LShift) for node in nodes) and len(nodes) > 5:
        return None  # a tower of powers takes for ever; 2**20 and 1 << 20 do not
    try:
        value = eval(compile(ast.Expression(expression), "<size>", "eval"), {"__builtins__": {}})
    except (ArithmeticError, ValueError, MemoryError):
        return None
    return value if type(value) is int else None
