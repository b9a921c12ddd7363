"""Lists of values as T1 writes them. In: `[2**i for i in range(6)] + [100]`. Out: the values.

The expression's syntax tree is walked by simpleeval: literals, arithmetic, comprehensions and the few
functions below, each bounded. Nothing else: no attributes, no names, no other calls; Python runs none of it.
"""

import simpleeval

from pipeline.records.errors import FormulaError

MOST = 10_000  # values of one tunable, and steps of one range

CANNOT = (
    *(simpleeval.InvalidExpression, ArithmeticError, AttributeError, LookupError),
    *(MemoryError, RecursionError, TypeError, ValueError),
)
"""What evaluating an expression may end with."""

_BITS = 63


def listed_values(expression: str) -> list[object]:
    """The values that an expression lists, in its order.

    Raises
    ------
    FormulaError
        Not such an expression, or not a list; the text names it.
    """
    evaluator = simpleeval.EvalWithCompoundTypes(functions=dict(FUNCTIONS), names={})
    evaluator.functions = dict(FUNCTIONS)  # without `dict`, `set` and `tuple`, which it adds
    try:
        values = evaluator.eval(expression.strip())
    except simpleeval.NameNotDefined as error:
        raise FormulaError(f"`{expression}`: expected values, got the unknown name '{error.name}'") from None
    except simpleeval.FunctionNotDefined as error:
        known = ", ".join(sorted(FUNCTIONS))
        raise FormulaError(f"`{expression}`: unknown function '{error.func_name}' (known: {known})") from None
    except SyntaxError as error:
        raise FormulaError(f"`{expression}`: not an expression: {error.msg}") from None
    except CANNOT as error:
        raise FormulaError(f"`{expression}`: cannot be evaluated: {error}") from None
    if not isinstance(values, list | tuple | range):
        raise FormulaError(f"`{expression}`: expected a list of values, got {values!r:.60}")
    if len(values) > MOST:
        raise FormulaError(f"`{expression}`: expected at most {MOST} values, got {len(values)}")
    if any(isinstance(value, int) and value.bit_length() > _BITS for value in values):
        raise FormulaError(f"`{expression}`: a value does not fit {_BITS + 1} bits")
    return list(values)


def _steps(*bounds: int) -> range:
    steps = range(*bounds)
    if len(steps) > MOST:
        raise ValueError(f"range of more than {MOST} steps")
    return steps


FUNCTIONS = {
    **{"range": _steps, "list": list, "len": len, "min": min, "max": max, "sum": sum, "sorted": sorted},
    **{"abs": abs, "int": int, "float": float, "round": round, "bool": bool, "str": str},
}
