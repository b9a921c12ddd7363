"""The statement tree of C++: what it sees, and what it leaves alone."""

from pathlib import Path

import pytest

from pipeline.search.rewriting.cpp_body import accesses, body_of
from pipeline.search.rewriting.cpp_tree import Loop, loop_of, statement_lists
from tests.search.rewriting.sources import PLAIN_MATMUL, PLAIN_RMS_NORM, function


def loops(text: str) -> list[Loop]:
    """All that are understood, outer ones first."""
    found = (loop_of(text, each) for listed in statement_lists(text) for each in listed)
    return sorted((each for each in found if each), key=lambda each: each.start)


def test_loops_with_their_parts() -> None:
    """Variables, limits, steps and the pragma before."""
    found = loops(PLAIN_MATMUL)
    assert [each.variable for each in found] == ["i", "j", "k", "i", "j"]
    assert [each.limit for each in found] == ["M", "N", "K", "M", "N"]
    assert {each.step for each in found} == {"1"}
    assert [each.pragma is not None for each in found] == [True, False, False, True, False]
    assert found[0].pragma is not None and found[0].pragma[2] == "omp parallel for"


def test_loops_without_braces() -> None:
    """A loop is the only statement of another one."""
    text = function("for (int i = 0; i < n; ++i)", "    for (int j = 1; j < m; j += 8) y[i] += x[j];")
    assert [(each.variable, each.first, each.step) for each in loops(text)] == [
        ("i", "0", "1"),
        ("j", "1", "8"),
    ]


@pytest.mark.parametrize(
    "header", ["int i = n; i > 0; --i", "; m < n; ++m", "int i = 0; i < n && m; ++i", "int i = 0; m < n; ++i",
               "auto& each : maxima"]
)  # fmt: skip
def test_loops_of_another_form(header: str) -> None:
    """Downwards, without a variable of their own, with two conditions: left alone."""
    assert loops(function(f"for ({header}) {{", "    y[0] = 0;", "}")) == []


def test_what_a_body_does() -> None:
    """Assignments and locals; accesses go through local pointers to what these point into."""
    body = body_of(PLAIN_RMS_NORM, loops(PLAIN_RMS_NORM)[0])
    assert body is not None
    assert body.locals == ("from", "to", "squares", "col", "factor", "col")
    assert [each.place for each in body.assignments] == ["squares", "to[col]"]
    assert ("y", "row*cols+col") in set(accesses(body))


@pytest.mark.parametrize(
    "line", ["f(y, z, x, n, m);", "y[i] = f(y, z, x, n, m);", "if (n) y[i] = 0;", "y[i] = z[i] = 0;",
             "return 1;", "y[i++] = 0;", "float& other = y[i];", "float* other = &y[i];", "break;"]
)  # fmt: skip
def test_what_is_not_understood(line: str) -> None:
    """Calls that may do anything, branches, second names, ways out."""
    text = function("for (int i = 0; i < n; ++i) {", f"    {line}", "}")
    (loop,) = loops(text)
    assert body_of(text, loop) is None


@pytest.mark.parametrize("path", sorted(Path("kernels").glob("*/*.cpp")), ids=str)
def test_shipped_sources(path: Path) -> None:
    """Every loop that is found begins at `for` and ends where a statement does."""
    text = path.read_text()
    found = loops(text)
    assert found
    for each in found:
        piece = text[each.statement.start : each.statement.end]
        assert piece.startswith("for (") and piece[-1] in ";}"
        assert piece.count("{") == piece.count("}") and piece.count("(") == piece.count(")")
