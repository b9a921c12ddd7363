"""Evaluate the expressions of the yamls: dimensions, constraints, costs. In: text and names. Out: a value."""

import ast
import functools
from collections.abc import Mapping

import simpleeval

from pipeline.errors import FormulaError
from pipeline.records.kernel import TunableValue

ELEMENT_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
"""What `itemsize` is, by the workload's dtype."""

_INTEGER_BITS = 63  # dimensions and costs are 64-bit integers everywhere


def ceil_div(numerator: int, denominator: int) -> int:
    """Quotient rounded up: how many blocks cover an extent."""
    return -(-numerator // denominator)


FUNCTIONS = {"min": min, "max": max, "ceil_div": ceil_div}


def evaluate(expression: str, names: Mapping[str, TunableValue]) -> TunableValue:
    """Value of a Python expression over `names`, with `min`, `max` and `ceil_div`.

    Raises
    ------
    FormulaError
        Not an expression, an unknown name, or an operation that cannot be done; the text names the expression
        and the known names.
    """
    evaluator = simpleeval.SimpleEval(functions=FUNCTIONS, names=names)
    try:
        value = evaluator.eval(expression, previously_parsed=_parsed(expression))
    except simpleeval.NameNotDefined as error:
        known = ", ".join(sorted(names)) or "none"
        raise FormulaError(f"`{expression}`: unknown name '{error.name}' (known: {known})") from None
    except simpleeval.FunctionNotDefined as error:
        known = ", ".join(sorted(FUNCTIONS))
        raise FormulaError(f"`{expression}`: unknown function '{error.func_name}' (known: {known})") from None
    except (simpleeval.InvalidExpression, ArithmeticError, TypeError, ValueError) as error:
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


@functools.lru_cache(maxsize=4096)
def names_in(expression: str) -> frozenset[str]:
    """Names that an expression reads, functions apart."""
    functions = {node.func for node in ast.walk(_parsed(expression)) if isinstance(node, ast.Call)}
    return frozenset(
        node.id
        for node in ast.walk(_parsed(expression))
        if isinstance(node, ast.Name) and node not in functions
    )


@functools.lru_cache(maxsize=4096)
def _parsed(expression: str) -> ast.expr:
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise FormulaError(f"`{expression}`: not an expression: {reason}") from None
