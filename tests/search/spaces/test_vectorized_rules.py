"""Rules over columns mean what they mean point by point: random rules, guarded operands, huge numbers."""

import itertools
import random

import numpy as np
import pytest

from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.errors import FormulaError
from pipeline.records.formula import evaluate
from pipeline.search.spaces.vectorized_rules import column, holds

VALUES: dict[str, tuple[TunableValue, ...]] = {
    "a": (0, 1, 2, 3, 16, -5),
    "b": (1, 2, 7, 1024),
    "f": (0.5, 1.0, 2.25),
    "t": (False, True),
    "s": ("none", "gelu"),
    "m": ("x", 1, 2.5),
}
RULES = 100


def made_up(generator: random.Random, depth: int) -> str:
    """A random expression, mostly over numbers."""
    if depth == 0 or generator.random() < 0.15:
        return generator.choice([*"aabbft", "s", "m", "3", "0", "2", "1.5", "64", "'gelu'", "True"])
    left, right = made_up(generator, depth - 1), made_up(generator, depth - 1)
    kind = generator.randrange(12)
    if kind < 5:
        return f"({left} {generator.choice(['+', '-', '*', '//', '%', '/', '**'])} {right})"
    if kind < 8:
        return f"({left} {generator.choice(['<', '<=', '==', '!=', '>', '>='])} {right})"
    if kind < 10:
        return f"({left} {generator.choice(['and', 'or'])} {right})"
    third = made_up(generator, depth - 1)
    return generator.choice(
        [
            f"(not {left})",
            f"(-{left})",
            f"min({left}, {right})",
            f"max({left}, {right}, {third})",
            f"ceil_div({left}, {right})",
            f"({left} < {right} <= {third})",
            f"({left} if {right} else {third})",
            f"({left} in ({right}, {third}))",
            f"({left} not in [{right}, {third}])",
        ]
    )


def one_by_one(rule: str) -> list[bool] | None:
    """Whether it holds, point by point; None where a point cannot be evaluated."""
    points = itertools.product(*VALUES.values())
    try:
        return [bool(evaluate(rule, dict(zip(VALUES, point, strict=True)))) for point in points]
    except FormulaError:
        return None


def at_once(rule: str) -> list[bool] | str:
    """The same with columns; the error where there is one."""
    axes = {
        name: column(values).reshape([-1 if name == other else 1 for other in VALUES])
        for name, values in VALUES.items()
    }
    try:
        found = holds(rule, axes)
    except FormulaError as error:
        return str(error)
    return [bool(each) for each in np.broadcast_to(found, [len(each) for each in VALUES.values()]).ravel()]


def test_random_rules_hold_where_python_says() -> None:
    """Truth of every point, and whether some point cannot be evaluated, agree with the scalar evaluator."""
    generator = random.Random(6)
    rules = [made_up(generator, generator.randint(1, 3)) for _ in range(RULES)]
    compared = 0
    for rule in rules:
        expected, found = one_by_one(rule), at_once(rule)
        if isinstance(found, str):
            beyond_rules = "a string" in found or "too large" in found  # 'x' * 2, 16 ** 1024
            assert expected is None or beyond_rules, (rule, found)
        elif expected is None:
            assert "**" in rule, rule  # values beyond 64 bits: an error there, Python's numbers here
        else:
            assert found == expected, rule
            compared += 1
    assert compared > RULES // 4


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("a == 0 or 16 % a == 0", [True, True, True, False]),
        ("a != 0 and 16 // a > 5", [False, True, True, False]),
        ("(16 / a if a else 0) > 5", [False, True, True, True]),
        ("0 < a <= 2", [False, True, True, False]),
        ("0 < 16 / max(a, 1) < 10", [False, False, True, True]),
        ("a in (0, 3)", [True, False, False, True]),
        ("a ** 2 in [1, 4]", [False, True, True, False]),
        ("(a or 7) * 2 > 5", [True, False, False, True]),
        ("lambda p: p['a'] > 1", [False, False, True, True]),
        ("lambda a: a > 1", [False, False, True, True]),
        ("hardware.a > 1", [False, False, True, True]),
        ("a << 2 >= 8", [False, False, True, True]),
        ("log2(max(a, 1)) == 1", [False, False, True, False]),
        ("math.ceil(a / 2) == 1", [False, True, True, False]),
        ("gcd(a, 6) == 3", [False, False, False, True]),
    ],
)
def test_python_meaning(rule: str, expected: list[bool]) -> None:
    """`and`, `or` and `if` guard what follows; chains, membership, lambdas, owners, functions."""
    values = (0, 1, 2, 3)
    assert holds(rule, {"a": column(values)}).tolist() == expected
    assert [bool(evaluate(rule, {"a": value})) for value in values] == expected


def test_numbers_beyond_64_bits_stay_exact() -> None:
    """A product that int64 cannot hold is compared as Python would."""
    large = column((2**40, 2**41))
    assert holds("a * a * a == 1 << 120", {"a": large}).tolist() == [True, False]
    assert holds("a * a > 0", {"a": large}).all()


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("16 % a == 0", "`16 % a == 0`: cannot be evaluated: division by zero"),
        ("a * s > 1", "`a * s > 1`: cannot be evaluated: unsupported operand: a string"),
        ("s < 1", "`s < 1`: cannot be evaluated: '<' not supported"),
        ("2 ** 100000 > a", "`2 ** 100000 > a`: cannot be evaluated: 2 ** 100000 is too large"),
        ("1 << 100000 > a", "`1 << 100000 > a`: cannot be evaluated: 1 << 100000 is too large"),
        ("open('x')", "`open('x')`: unknown function 'open' (known: abs,"),
        ("a.real > 1", "`a.real > 1`: cannot be evaluated: Attribute is not known here"),
        ("[a for a in (1, 2)]", "`[a for a in (1, 2)]`: cannot be evaluated: ListComp is not known here"),
        ("(a := 1) > 0", "`(a := 1) > 0`: cannot be evaluated: NamedExpr is not known here"),
        ("(lambda: 1)() > 0", "`(lambda: 1)() > 0`: cannot be evaluated: Call is not known here"),
        ("not " * 900 + "a", "`not not"),
        ("a is 1", "`a is 1`: cannot be evaluated: Is is not known"),
    ],
)
def test_errors(rule: str, text: str) -> None:
    """One line that names the rule; nothing but formulas is evaluated."""
    with pytest.raises(FormulaError) as caught:
        holds(rule, {"a": column((0, 1)), "s": column(("x", "y"))})
    assert str(caught.value).startswith(text)


def test_columns_are_numbers_where_that_is_exact() -> None:
    """Truth values count as whole numbers; mixed kinds and large numbers stay Python's objects."""
    assert column((1, True)).dtype == np.int64
    assert column((0.5, 1.0)).dtype == np.float64
    assert column((1, 0.5)).dtype == object
    assert column((2**60,)).dtype == object
