"""Loops merged in C++: nests that go the same way, and all that keeps them apart."""

import pytest

from pipeline.search.rewriting.cpp_fusion import TRANSFORMATION
from tests.search.rewriting.sources import PLAIN_MATMUL, found, function

FIRST = "for (int i = 0; i < n; ++i) y[i] = x[i];"


def test_a_nest_becomes_one() -> None:
    """Bias and GELU follow the sum of their element, inside the inner loop."""
    (rewrite,) = found(TRANSFORMATION, PLAIN_MATMUL)
    text = " ".join(rewrite.text.split())
    assert "c[i * N + j] = sum; const float value = c[i * N + j] + bias[j];" in text
    assert text.count("#pragma omp parallel for") == 1
    assert text.count("for (std::int64_t j") == 1


def test_names_are_kept_apart() -> None:
    """The second loop's variable becomes the first one's; equal local names get braces."""
    text = function(
        "for (int i = 0; i < n; ++i) { const float t = x[i]; y[i] = t; }",
        "// then",
        "for (int k = 0; k < n; ++k) { const float t = y[k]; y[k] = t * t; }",
    )
    (rewrite,) = found(TRANSFORMATION, text)
    merged = " ".join(rewrite.text.split())
    assert "{ const float t = x[i]; y[i] = t; }" in merged
    assert "{ const float t = y[i]; y[i] = t * t; }" in merged
    assert "// then" in rewrite.text


@pytest.mark.parametrize(
    "second", [
        "for (int i = 0; i < m; ++i) y[i] += 1.0f;",  # another length
        "for (int i = 0; i < n; ++i) n = 3;",  # a length that changes
        "for (int i = 0; i < n; ++i) y[i] = y[n - 1 - i];",  # elements of other iterations
        "for (int i = 0; i < n; ++i) z[i] = y[0];",
        "for (int i = 0; i < n; ++i) z[i] = vec::load(y + i + 1);",
        "for (int i = 0; i < n; ++i) f(y, z, x, n, m);",  # may do anything
        "m = 0;\n    for (int i = 0; i < n; ++i) y[i] += 1.0f;",  # something between them
        "\n#if 1\n    for (int i = 0; i < n; ++i) y[i] += 1.0f;\n#endif",  # not always there
        "\n#pragma omp parallel for\n    for (int i = 0; i < n; ++i) y[i] += 1.0f;",  # runs otherwise
    ]
)  # fmt: skip
def test_loops_that_stay_apart(second: str) -> None:
    """Refused."""
    assert found(TRANSFORMATION, function(FIRST, second)) == []


def test_a_sum_keeps_them_apart() -> None:
    """What the second loop reads is known only when the first one has ended."""
    text = function(
        "float s = 0;",
        "for (int i = 0; i < n; ++i) { y[i] = x[i]; s += x[i]; }",
        "for (int i = 0; i < n; ++i) y[i] = y[i] / s;",
    )
    assert found(TRANSFORMATION, text) == []


def test_second_names_keep_them_apart() -> None:
    """Two pointers into one array are seen where the text declares them."""
    text = function("const float* from = y;", FIRST, "for (int i = 0; i < n; ++i) z[i] = from[i + 1];")
    assert found(TRANSFORMATION, text) == []
