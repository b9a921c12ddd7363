"""The corpus of packages' kernels is whole, and its page says what it holds."""

import ast

from tests.real_kernels.table import PROBLEMS, TARGET, kernels


def test_every_candidate_has_a_row() -> None:
    """And every row a candidate that imports its package."""
    found = {
        (path.parts[-3], path.stem): path.read_text() for path in sorted(PROBLEMS.glob("*/solutions/*.py"))
    }
    assert found.keys() == kernels().keys()
    for (problem, package), text in found.items():
        imported = {
            (node.module or "").partition(".")[0]
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.ImportFrom)
        } | {
            name.name.partition(".")[0]
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Import)
            for name in node.names
        }
        assert package in imported, problem


def test_page_is_about_this_corpus() -> None:
    """It names every problem."""
    page = TARGET.read_text()
    assert [problem for problem, _ in kernels() if f"| {problem} |" not in page] == []
