"""Rewrites: where each applies, what it writes, and that every shipped source stays a source."""

import ast
from pathlib import Path

import pytest

from pipeline.search.rewriting import triton_loops
from pipeline.search.rewriting.rewrite import Source
from pipeline.search.rewriting.rewrite_catalogue import TRANSFORMATIONS

TRITON = """
@triton.jit
def kernel(x, n, BLOCK: tl.constexpr):
    for start in tl.range(0, n, BLOCK, num_stages=STAGES):
        tl.load(x + start)
    for step in range(4):
        x += step

def launch(x):
    for each in range(3):
        kernel[(1,)](x, 1, 2)
"""


def rewrites(transformations: dict, name: str, text: str) -> list:
    """What one transformation finds."""
    return list(transformations[name].find(Source(text=text)))


def test_stages_of_loops_that_load() -> None:
    """The keyword takes the new value; a loop without calls, or of host code, is left alone."""
    found = rewrites(triton_loops.TRANSFORMATIONS, "stages", TRITON)
    assert [(each.name, each.line) for each in found] == [("stages=2", 4), ("stages=3", 4), ("stages=4", 4)]
    assert "tl.range(0, n, BLOCK, num_stages=2):" in found[0].text


def test_unrolled_triton_loops() -> None:
    """`range` becomes `tl.range`, which takes the factor."""
    found = rewrites(triton_loops.TRANSFORMATIONS, "unroll", TRITON)
    assert [each.line for each in found] == [4, 4, 6, 6]
    assert "for step in tl.range(4, loop_unroll_factor=2):" in found[2].text
    assert "num_stages=STAGES, loop_unroll_factor=4):" in found[1].text


def test_what_is_no_python_has_no_rewrites() -> None:
    """A language model's answer may be anything."""
    assert rewrites(triton_loops.TRANSFORMATIONS, "stages", "def (:\n") == []


SHIPPED = sorted(Path("kernels").glob("*/*_triton.py"))


@pytest.mark.parametrize("path", SHIPPED, ids=str)
def test_rewrites_of_shipped_sources(path: Path) -> None:
    """Each is another text than its parent and siblings, and still parses."""
    text = path.read_text()
    found = [
        each
        for kind in TRANSFORMATIONS.values()
        for each in kind.find(Source(text=text, limits={"sm_count": 132}))
    ]
    assert found
    assert len({each.text for each in found} | {text}) == len(found) + 1
    for each in found:
        ast.parse(each.text)
