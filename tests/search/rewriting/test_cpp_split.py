"""Sums in parts: the code that is written, and loops that do more than add."""

import pytest

from pipeline.search.rewriting.cpp_split import TRANSFORMATION
from tests.search.rewriting.sources import PLAIN_MATMUL, found, function


def test_parts_of_a_sum() -> None:
    """As many sums as parts, a loop for what is left, and the parts added at the end."""
    rewrites = found(TRANSFORMATION, PLAIN_MATMUL)
    assert [each.name for each in rewrites] == ["split-K=2", "split-K=4", "split-K=8"]
    text = " ".join(rewrites[0].text.split())
    assert "decltype(sum + sum) split_0_1{};" in text
    assert "for (; split_k + 1 * (1) < K; split_k += 2 * (1)) {" in text
    assert "{ const std::int64_t k = split_k + 1 * (1); split_0_1 += a[i * stride_a + k]" in text
    assert "for (; split_k < K; split_k += 1) { const std::int64_t k = split_k; sum += a[" in text
    assert "sum += split_0_1; }" in text


@pytest.mark.parametrize(
    "body", [
        "y[i] += x[i];",  # a sum of its own each time
        "s += x[i]; y[i] = 0;",  # writes something else
        "s += s * x[i];",  # the sum is in the term
        "s -= x[i];",
        "const int k = m + i; y[k] += x[i];",  # which sum depends on the iteration
        "s += f(y, z, x, i, m);",
    ]
)  # fmt: skip
def test_loops_that_do_more(body: str) -> None:
    """Refused."""
    assert found(TRANSFORMATION, function("float s = 0;", "for (int i = 0; i < n; ++i) {", body, "}")) == []
