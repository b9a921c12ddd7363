"""Formulas give values, and their errors name the expression and what is known."""

import pytest

from pipeline.records.errors import FormulaError
from pipeline.records.formula import evaluate, evaluate_number, names_in

NAMES = {"tokens": 6, "heads": 4, "epilogue": "none", "STREAM": True}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("tokens * heads", 24),
        ("ceil_div(tokens, heads)", 2),
        ("min(tokens, heads) + max(1, heads)", 8),
        ("not STREAM or epilogue == 'none'", True),
        ("1 <= heads < tokens", True),
        ("tokens / heads", 1.5),
    ],
)
def test_values(expression: str, value: object) -> None:
    """Python's syntax, the three functions, comparison chains."""
    assert evaluate(expression, NAMES) == value


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (
            "tokns * 2",
            "`tokns * 2`: unknown name 'tokns'; did you mean 'tokens'? (known: STREAM, epilogue, heads,",
        ),
        ("sqrt(tokens)", "`sqrt(tokens)`: unknown function 'sqrt' (known: abs, ceil, ceil_div,"),
        ("tokens / 0", "`tokens / 0`: cannot be evaluated: division by zero"),
        ("tokens heads", "`tokens heads`: not an expression: invalid syntax"),
        ("tokens; heads", "`tokens; heads`: not an expression: invalid syntax"),
        ("2 ** 10000", "`2 ** 10000`: its value does not fit 64 bits"),
        ("tokens * None", "`tokens * None`: cannot be evaluated: unsupported operand"),
        ("__import__('os')", "`__import__('os')`: unknown function '__import__'"),
        ("().__class__", "`().__class__`: cannot be evaluated"),
    ],
)
def test_errors(expression: str, text: str) -> None:
    """Every error is one line that names the expression; nothing but formulas is evaluated."""
    with pytest.raises(FormulaError) as caught:
        evaluate(expression, NAMES)
    assert str(caught.value).startswith(text)
    assert "\n" not in str(caught.value)


def test_a_number_is_asked_for() -> None:
    """A cost is a number, not a truth value."""
    with pytest.raises(FormulaError, match="expected a number, got True"):
        evaluate_number("tokens > 1", NAMES)


def test_names() -> None:
    """Functions are not names."""
    assert names_in("max(BLOCK_M, rows) <= limit") == {"BLOCK_M", "rows", "limit"}
