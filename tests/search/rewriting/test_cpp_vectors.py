"""Vector width of C++ loops: where the directive stands, and where it must not."""

import pytest

from pipeline.search.rewriting.cpp_vectors import TRANSFORMATION
from tests.search.rewriting.sources import PLAIN_RMS_NORM, found, function


def test_sums_and_elements() -> None:
    """A sum is declared a reduction; a loop over elements needs no clause."""
    rewrites = found(TRANSFORMATION, PLAIN_RMS_NORM)
    assert [each.name for each in rewrites] == [f"vector width={lanes}" for lanes in (4, 8, 16)] * 2
    assert (
        "#pragma omp simd simdlen(4) reduction(+ : squares)\n        for (std::int64_t col"
        in rewrites[0].text
    )
    assert "#pragma omp simd simdlen(8)\n        for (std::int64_t col" in rewrites[4].text


def test_the_processor_limits_the_width() -> None:
    """Two registers at most: wider ones only spill."""
    names = {each.name for each in found(TRANSFORMATION, PLAIN_RMS_NORM, vector_bits=128)}
    assert names == {"vector width=4", "vector width=8"}


def test_another_width() -> None:
    """What was rewritten once gets another width in place of the one that it has."""
    (first, *_) = found(TRANSFORMATION, PLAIN_RMS_NORM)
    again = [each for each in found(TRANSFORMATION, first.text) if each.line == first.line + 1]
    assert [each.name for each in again] == ["vector width=8", "vector width=16"]
    assert all(each.text.count("omp simd") == 1 for each in again)


def test_extrema() -> None:
    """The largest of all is a reduction as well."""
    text = function(
        "float top = x[0];", "for (int i = 0; i < n; ++i) top = std::max(top, x[i]);", "y[0] = top;"
    )
    (first, *_) = found(TRANSFORMATION, text)
    assert "reduction(max : top)" in first.text


@pytest.mark.parametrize(
    "body", [
        "y[i] = y[i - 1] + x[i];",  # the one before is read
        "y[0] = x[i];",  # all write the same element
        "s = x[i] - s;",  # a chain, no sum
        "s += x[i]; y[i] = s;",  # every part of the sum is used
        "y[i] = f(y, z, x, i, m);",  # may do anything
        "float* to = y + 1; to[i] = y[i];",  # two names for one array
        "y[i] = vec::load(y + i + 1);",  # accessed past the brackets
    ]
)  # fmt: skip
def test_iterations_that_depend_on_each_other(body: str) -> None:
    """Refused: the directive would make a right program a wrong one."""
    assert found(TRANSFORMATION, function("float s = 0;", "for (int i = 0; i < n; ++i) {", body, "}")) == []


@pytest.mark.parametrize(
    "lines", [
        ("#pragma omp parallel for", "for (int i = 0; i < n; ++i) y[i] = x[i];"),  # said already how it runs
        ("for (int i = 0; i < n; i += 8) y[i] = x[i];",),  # steps are vectors already
        ("float* to = y;", "for (int i = 0; i < n; ++i) y[i] = to[i + 1];"),  # two names for one array
    ]
)  # fmt: skip
def test_loops_that_stay(lines: tuple[str, ...]) -> None:
    """Refused as well."""
    text = function(*lines).replace("    #pragma", "#pragma")
    assert found(TRANSFORMATION, text) == []
