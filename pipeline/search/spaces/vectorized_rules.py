"""Evaluate a rule for many points at once: which rows of columns of values satisfy it.

The rule's syntax tree is walked once with numpy operations that have Python's semantics: integers that could
leave the exact range, and values of mixed types, are Python objects; an operand of `and`, `or` or `if` that
fails is evaluated again, only for the rows for which Python would evaluate it.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.errors import FormulaError
from pipeline.records.formula import FUNCTIONS, names_of, syntax_tree, unknown_function

Column = npt.NDArray[Any]
Truth = npt.NDArray[np.bool_]

EXACT = 2**53  # whole numbers up to here are the same as float64
LARGEST_POWER_BITS = 4096
FAILURES = (ArithmeticError, RecursionError, TypeError, ValueError)


def column(values: Sequence[TunableValue]) -> Column:
    """Values as int64 (booleans too) or float64 if that is exact, else as objects."""
    kinds = {type(value) for value in values}
    if kinds <= {int, bool} and all(-EXACT < value < EXACT for value in values):  # type: ignore[operator]
        return np.array(values, dtype=np.int64)
    if kinds == {float}:
        return np.array(values, dtype=np.float64)
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def holds(rule: str, columns: Mapping[str, Column]) -> Truth:
    """Which rows satisfy a rule; the shapes of the columns and of the result broadcast.

    Raises
    ------
    FormulaError
        It is no rule, or cannot be evaluated on some point that Python would come to.
    """
    try:
        with np.errstate(all="ignore"):
            return _truth(_Walk(rule, columns).value(syntax_tree(rule)))
    except FAILURES as error:
        raise FormulaError(f"`{rule}`: cannot be evaluated: {error}") from None


class _Walk:
    """Evaluates parts of one rule's tree."""

    def __init__(self, rule: str, columns: Mapping[str, Column]) -> None:
        self._rule = rule
        self._columns = columns

    def value(self, node: ast.expr) -> Column:  # noqa: PLR0911  a return for each kind of node
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as constant):
                return column([constant])
            case ast.Name(id=name):
                return self._columns[name]
            case ast.UnaryOp(op=operator, operand=operand):
                return self._unary(operator, operand)
            case ast.BinOp(left=left, op=operator, right=right):
                return _arithmetic(operator, self.value(left), self.value(right))
            case ast.BoolOp(op=operator, values=operands):
                result = self.value(operands[0])
                for operand in operands[1:]:
                    result = self._joined(operator, result, operand)
                return result
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                return self._compared(operator, left, right)
            case ast.Compare():
                return self.value(_unchained(node))
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                where = _truth(self.value(test))
                return _chosen(where, self._where(where, body), self._where(~where, otherwise))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._called(name, arguments)
        raise FormulaError(f"`{self._rule}`: cannot be evaluated: {type(node).__name__} is not known here")

    def _unary(self, operator: ast.unaryop, operand: ast.expr) -> Column:
        value = self.value(operand)
        if isinstance(operator, ast.Not):
            return ~_truth(value)
        zero = column([0])
        return _arithmetic(ast.Sub() if isinstance(operator, ast.USub) else ast.Add(), zero, value)

    def _joined(self, operator: ast.boolop, left: Column, operand: ast.expr) -> Column:
        decided = ~_truth(left) if isinstance(operator, ast.And) else _truth(left)
        return left if decided.all() else _chosen(decided, left, self._where(~decided, operand))

    def _where(self, wanted: Truth, node: ast.expr) -> Column:
        """The value of a subexpression; arbitrary in rows in which Python would not evaluate it."""
        try:
            return self.value(node)
        except FAILURES:
            if wanted.all():
                raise
        used = {name: self._columns[name] for name in names_of(node)}
        shape = np.broadcast_shapes(wanted.shape, *(each.shape for each in used.values()))
        rows = np.broadcast_to(wanted, shape)
        narrowed = {name: np.broadcast_to(each, shape)[rows] for name, each in used.items()}
        found = _Walk(self._rule, narrowed).value(node)
        result = np.zeros(shape, dtype=found.dtype)
        result[rows] = found
        return result

    def _compared(self, operator: ast.cmpop, left: ast.expr, right: ast.expr) -> Column:
        value = self.value(left)
        if isinstance(operator, ast.In | ast.NotIn):
            if isinstance(right, ast.Tuple | ast.List | ast.Set):
                each = [_aligned_comparison(np.equal, value, self.value(item)) for item in right.elts]
                among = np.logical_or.reduce(np.broadcast_arrays(*each)) if each else np.zeros(1, np.bool_)
            else:
                among = _elementwise(lambda item, text: item in text, value, self.value(right)).astype(bool)
            return ~among if isinstance(operator, ast.NotIn) else among
        comparison = COMPARISONS.get(type(operator))
        if comparison is None:
            raise FormulaError(f"`{self._rule}`: cannot be evaluated: {type(operator).__name__} is not known")
        return _aligned_comparison(comparison, value, self.value(right))

    def _called(self, name: str, arguments: Sequence[ast.expr]) -> Column:
        function = FUNCTIONS.get(name)
        if function is None:
            raise unknown_function(self._rule, name)
        values = [self.value(argument) for argument in arguments]
        found = _elementwise(function, *values)
        return column(found.ravel().tolist()).reshape(found.shape)


COMPARISONS: dict[type[ast.cmpop], np.ufunc] = {
    **{ast.Eq: np.equal, ast.NotEq: np.not_equal, ast.Lt: np.less, ast.LtE: np.less_equal},
    **{ast.Gt: np.greater, ast.GtE: np.greater_equal},
}

OPERATIONS: dict[type[ast.operator], np.ufunc] = {
    **{ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.true_divide},
    **{ast.FloorDiv: np.floor_divide, ast.Mod: np.remainder},
    **{ast.BitAnd: np.bitwise_and, ast.BitOr: np.bitwise_or, ast.BitXor: np.bitwise_xor},
    **{ast.RShift: np.right_shift},
}


def _unchained(node: ast.Compare) -> ast.BoolOp:
    """`a < b < c` as `a < b and b < c`."""
    sides = [node.left, *node.comparators]
    return ast.BoolOp(
        op=ast.And(),
        values=[
            ast.Compare(left=left, ops=[operator], comparators=[right])
            for left, operator, right in zip(sides[:-1], node.ops, sides[1:], strict=True)
        ],
    )


def _truth(value: Column) -> Truth:
    return value.astype(np.bool_)


def _arithmetic(operator: ast.operator, left: Column, right: Column) -> Column:
    left, right = _aligned(left, right)
    for side in (left, right):
        if side.dtype == object and any(isinstance(each, str) for each in side.flat):
            raise TypeError("unsupported operand: a string")
    if isinstance(operator, ast.Pow | ast.LShift):
        found = _elementwise(_power if isinstance(operator, ast.Pow) else _shifted, left, right)
        return column(found.ravel().tolist()).reshape(found.shape)
    operation = OPERATIONS.get(type(operator))
    if operation is None:
        raise TypeError(f"{type(operator).__name__} is not known")
    if left.dtype != object:
        if isinstance(operator, ast.Div | ast.FloorDiv | ast.Mod) and not right.all():
            raise ZeroDivisionError("division by zero")
        if not _stays_exact(operator, left, right):
            left, right = left.astype(object), right.astype(object)
    return np.asarray(operation(left, right))


def _stays_exact(operator: ast.operator, left: Column, right: Column) -> bool:
    """Whether integers stay in the range in which int64 and float64 agree with Python."""
    if np.float64 in (left.dtype, right.dtype) or not left.size or not right.size:
        return True
    bounds = [max(abs(int(side.min())), abs(int(side.max()))) for side in (left, right)]
    match operator:
        case ast.Mult():
            return bounds[0] * bounds[1] < EXACT
        case ast.Add() | ast.Sub():
            return sum(bounds) < EXACT
    return True


def _aligned(left: Column, right: Column) -> tuple[Column, Column]:
    """Both as numbers, or both as objects; booleans count as 0 and 1."""
    sides = [side.astype(np.int64) if side.dtype == np.bool_ else side for side in (left, right)]
    if any(side.dtype == object for side in sides):
        sides = [side.astype(object) for side in sides]
    return sides[0], sides[1]


def _aligned_comparison(comparison: np.ufunc, left: Column, right: Column) -> Truth:
    return np.asarray(comparison(*_aligned(left, right))).astype(np.bool_)


def _chosen(where: Truth, left: Column, right: Column) -> Column:
    if left.dtype != right.dtype:
        left, right = _aligned(left, right)
    return np.where(where, left, right)


def _elementwise(function: Callable[..., Any], *columns: Column) -> Column:
    """Apply a Python function to each element, as a Python number."""
    objects = [each.astype(object) for each in columns]
    return np.asarray(np.frompyfunc(function, len(objects), 1)(*objects))


def _power(base: Any, exponent: Any) -> Any:
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and base.bit_length() * exponent > LARGEST_POWER_BITS:
        raise ValueError(f"{base} ** {exponent} is too large")
    result = base**exponent
    if isinstance(result, complex):
        raise ValueError(f"{base} ** {exponent} is no real number")
    return result


def _shifted(value: int, places: int) -> int:
    if places > LARGEST_POWER_BITS:
        raise ValueError(f"{value} << {places} is too large")
    return value << places
