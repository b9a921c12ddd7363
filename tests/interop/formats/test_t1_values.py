"""Lists of values in Python's syntax, walked and bounded."""

import pytest

from pipeline.interop.formats.t1 import listed_values
from pipeline.records.errors import FormulaError


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("[1, 2, 4]", [1, 2, 4]),
        ("[1, 2] + list(range(32, 97, 32))", [1, 2, 32, 64, 96]),
        ("[2**i for i in range(0, 6)]", [1, 2, 4, 8, 16, 32]),
        ("[16*i for i in range(1,9) if i % 2 == 0]", [32, 64, 96, 128]),
        ("range(3)", [0, 1, 2]),
        ("1, 2", [1, 2]),
        ("['a', \"b\"]", ["a", "b"]),
        ("[True, False]", [True, False]),
        ("[-1, 0.5]", [-1, 0.5]),
        ("sorted([3, 1])", [1, 3]),
    ],
)
def test_values(expression: str, values: list[object]) -> None:
    """What the hub's files write, and a little more."""
    assert listed_values(expression) == values


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("[i for i in range(10**9)]", "cannot be evaluated: range of more than 10000 steps"),
        ("[10**30]", "a value does not fit 64 bits"),
        ("[9**9**9]", "cannot be evaluated"),
        ("[1] * 10**9", "cannot be evaluated"),
        ("().__class__", "cannot be evaluated"),
        ("[x.y for x in [1]]", "cannot be evaluated"),
        ("__import__('os').system('true')", "unknown function '__import__'"),
        ("__import__('os')", "unknown function '__import__' (known: abs, bool,"),
        ("open('/etc/passwd')", "unknown function 'open'"),
        ("3", "expected a list of values, got 3"),
        ("{1: 2}", "expected a list of values, got {1: 2}"),
        ("[1, 2", "not an expression"),
        ("", "cannot be evaluated"),
        ("n", "expected values, got the unknown name 'n'"),
        ("[1, 2][5]", "cannot be evaluated: list index out of range"),
        ("{1: 2}[3]", "cannot be evaluated: "),
    ],
)
def test_errors(expression: str, text: str) -> None:
    """Nothing but values comes out, in bounded time; the text names the expression."""
    with pytest.raises(FormulaError) as caught:
        listed_values(expression)
    assert str(caught.value).startswith(f"`{expression}`: {text}")
