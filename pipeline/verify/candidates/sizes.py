"""Module-level sizes of a problem: the integers that its source names, and modules with other ones.

In: a problem's source. Out: its `Size`s, and modules made from it with some of them replaced. The source is
run anew for each replacement, so that what it derives from a size (`hidden = 4 * features`) follows.
"""

import ast
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.records.record import Record

_CONSTANT = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)


class Size(Record, frozen=True, kw_only=True):
    """One positive integer that the module gives a name: `rows`, or `shape[1]` for a part of a tuple."""

    name: str
    value: int


class Source:
    """The source of a problem; SyntaxError where it is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._text = path.read_bytes()
        found = _constants(ast.parse(self._text, filename=str(path)))
        self.sizes = tuple(Size(name=name, value=value) for name, (_, value) in found.items())

    def module(self, values: Mapping[str, int], name: str) -> types.ModuleType:
        """Run the source with other values of its sizes; its folder is where it imports from first."""
        tree = ast.parse(self._text, filename=str(self.path))
        constants = _constants(tree)
        places = {id(constants[size][0]): value for size, value in values.items()}
        changed: ast.Module = ast.fix_missing_locations(_Replacement(places).visit(tree))
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
