"""Sums with their loop outside: the code that is written, and sums that stay where they are."""

import pytest

from pipeline.search.rewriting.cpp_order import TRANSFORMATION
from tests.search.rewriting.sources import PLAIN_MATMUL, found, function

SUM = (
    "for (int i = 0; i < n; ++i) { float s = 0.0f; for (int k = 0; k < m; ++k) s += x[k * n + i]; y[i] = s; }"
)


def nested(text: str) -> str:
    """In lines: a loop is one that begins a line."""
    return function(*text.replace("{ ", "{\n").replace("; for", ";\nfor").replace("; y", ";\ny").split("\n"))


def test_the_sum_goes_outside() -> None:
    """The elements begin at zero, then each step adds to all of them."""
    (rewrite,) = found(TRANSFORMATION, PLAIN_MATMUL)
    text = " ".join(rewrite.text.split())
    loop = "for (std::int64_t j = 0; j < N; ++j)"
    assert f"{loop} {{ c[i * N + j] = 0.0f; }}" in text
    assert f"for (std::int64_t k = 0; k < K; ++k) {{ {loop} {{ c[i * N + j] += a[i * stride_a + k] *" in text
    assert "float sum" not in text


def test_sums_without_braces() -> None:
    """The same of a loop with a single statement."""
    (rewrite,) = found(TRANSFORMATION, nested(SUM))
    assert "y[i] += x[k * n + i];" in rewrite.text


@pytest.mark.parametrize(
    ("old", "new"), [
        ("float s", "double s"),  # sums in another type
        ("y[i] = s", "y[i] = s * 2"),
        ("k < m", "k < i"),  # another length for each element
        ("y[i] = s", "y[0] = s"),
        ("x[k * n + i]", "y[k]"),  # reads the result
        ("s += ", "s = 2 * "),
    ]
)  # fmt: skip
def test_sums_that_stay(old: str, new: str) -> None:
    """Refused."""
    assert old in SUM
    assert found(TRANSFORMATION, nested(SUM.replace(old, new))) == []
