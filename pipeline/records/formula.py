"""Evaluate the expressions of the yamls: dimensions, constraints, costs. In: text and names. Out: a value.

Python's syntax, its tree checked and walked, never run by Python. `hardware.limit` and `workload.dimension`
mean the same as the bare name; a condition written as a lambda (`lambda p: p["x"] <= 32`) means its body.
"""

import ast
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import simpleeval

from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.errors import FormulaError, hint

ELEMENT_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
"""What `itemsize` is, by the workload's dtype."""

PREFIXES = ("hardware", "workload", "kernel")
"""Owners that a name may be written with: they say where it is declared."""

_INTEGER_BITS = 63  # dimensions and costs are 64-bit integers everywhere
_COMPOUND = ast.Tuple | ast.List | ast.Set


def ceil_div(numerator: int, denominator: int) -> int:
    """Quotient rounded up: how many blocks cover an extent."""
    return -(-numerator // denominator)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{"min": min, "max": max, "ceil_div": ceil_div, "abs": abs, "round": round, "int": int, "float": float},
    **{"ceil": math.ceil, "floor": math.floor, "log2": math.log2, "gcd": math.gcd},
}


def evaluate(expression: str, names: Mapping[str, TunableValue]) -> TunableValue:
    """Value of a Python expression over `names`, with `min`, `max`, `ceil_div` and the like.

    Raises
    ------
    FormulaError
        Not an expression, an unknown name, or an operation that cannot be done; the text names the expression
        and the known names.
    """
    tree = syntax_tree(expression)
    compound = any(isinstance(node, _COMPOUND) for node in ast.walk(tree))
    kind = simpleeval.EvalWithCompoundTypes if compound else simpleeval.SimpleEval
    evaluator = kind(functions={}, names=names)
    evaluator.functions = FUNCTIONS
    try:
        value = evaluator.eval(expression, previously_parsed=tree)
    except simpleeval.NameNotDefined as error:
        raise FormulaError(
            f"`{expression}`: unknown name '{error.name}'{hint(error.name, sorted(names))}"
        ) from None
    except simpleeval.FunctionNotDefined as error:
        raise unknown_function(expression, error.func_name) from None
    except (simpleeval.InvalidExpression, ArithmeticError, RecursionError, TypeError, ValueError) as error:
        raise FormulaError(f"`{expression}`: cannot be evaluated: {error}") from None
    if not isinstance(value, bool | int | float | str):
        kind = type(value).__name__
        raise FormulaError(f"`{expression}`: expected a number, a string or a truth value, got a {kind}")
    if isinstance(value, int) and value.bit_length() > _INTEGER_BITS:
        raise FormulaError(f"`{expression}`: its value does not fit {_INTEGER_BITS + 1} bits")
    return value


def evaluate_number(expression: str, names: Mapping[str, TunableValue]) -> float:
    """The same for a formula that must give a number."""
    value = evaluate(expression, names)
    if isinstance(value, str | bool):
        raise FormulaError(f"`{expression}`: expected a number, got {value!r}")
    return value


def unknown_function(expression: str, name: str) -> FormulaError:
    """The error of a call of something else."""
    known = ", ".join(sorted(FUNCTIONS))
    return FormulaError(f"`{expression}`: unknown function '{name}' (known: {known})")


@functools.lru_cache(maxsize=4096)
def names_in(expression: str) -> frozenset[str]:
    """Names that an expression reads, functions apart."""
    return names_of(syntax_tree(expression))


def names_of(tree: ast.expr) -> frozenset[str]:
    """The same of a part of one."""
    functions = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node not in functions
    )


@functools.lru_cache(maxsize=4096)
def syntax_tree(expression: str) -> ast.expr:
    """The tree of an expression, names without their owners, a lambda as its body.

    Raises
    ------
    FormulaError
        It is not an expression.
    """
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
        if isinstance(tree, ast.Lambda):
            tree = _Argument(tree).visit(tree.body)
        bare: ast.expr = _Bare().visit(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise FormulaError(f"`{expression}`: not an expression: {reason}") from None
    return bare


class _Bare(ast.NodeTransformer):
    """`hardware.x` becomes `x`, `math.ceil` becomes `ceil`."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Anything else stays, and is refused when it is evaluated."""
        self.generic_visit(node)
        owner = node.value.id if isinstance(node.value, ast.Name) else None
        if owner in PREFIXES or (owner == "math" and node.attr in FUNCTIONS):
            return ast.copy_location(ast.Name(id=node.attr, ctx=ast.Load()), node)
        return node


class _Argument(ast.NodeTransformer):
    """`p["x"]` becomes `x`, where `p` is the lambda's argument."""

    def __init__(self, function: ast.Lambda) -> None:
        self._arguments = {each.arg for each in function.args.args}

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Only this argument, only a name in quotes."""
        self.generic_visit(node)
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))):
                if name in self._arguments and key.isidentifier():
                    return ast.copy_location(ast.Name(id=key, ctx=ast.Load()), node)
        return node
