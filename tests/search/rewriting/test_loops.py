"""Rewrites: where each applies, what it writes, and that every shipped source stays a source."""

import ast
from pathlib import Path

import pytest

from pipeline.search.rewriting import cpp_loops, triton_loops
from pipeline.search.rewriting.catalogue import LANGUAGES
from pipeline.search.rewriting.rewrite import Source

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
CPP = """// for (int a = 0; a < 1; ++a) {
extern "C" int f(float* y, int n) {
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < 8; ++j) y[i * 8 + j] = 0.0f;
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) y[k] += 1.0f;
#pragma omp parallel for
    for (int k = 0; k < n; ++k) y[k] += 1.0f;
    return 0;
}
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


def test_unrolled_cpp_loops() -> None:
    """A pragma before the loop, or in place of the one that it has; comments and OpenMP's loops are left."""
    found = rewrites(cpp_loops.TRANSFORMATIONS, "unroll", CPP)
    assert sorted({each.line for each in found}) == [3, 4, 7]
    assert "#pragma GCC unroll 2\n    for (int i = 0;" in found[0].text
    changed = [each for each in found if each.line == 7]
    assert [each.name for each in changed] == ["unroll=2", "unroll=8"]
    assert "#pragma GCC unroll 8\n    for (int k = 0; k < 4" in changed[1].text
    assert "#pragma GCC unroll 4" not in changed[1].text


def test_independent_iterations() -> None:
    """Only where no pragma says how the loop runs."""
    found = rewrites(cpp_loops.TRANSFORMATIONS, "ivdep", CPP)
    assert [each.line for each in found] == [3, 4]
    assert "#pragma GCC ivdep\n        for (int j = 0;" in found[1].text


def test_loop_order() -> None:
    """Two loops with nothing beside them change places; where one reads the other's variable, they stay."""
    (found,) = rewrites(cpp_loops.TRANSFORMATIONS, "loop order", CPP)
    assert "    for (int j = 0; j < 8; ++j) {\n        for (int i = 0; i < n; ++i) y[i * 8 + j]" in found.text
    triangle = CPP.replace("j < 8", "j < i")
    assert rewrites(cpp_loops.TRANSFORMATIONS, "loop order", triangle) == []
    beside = CPP.replace("    }\n#pragma GCC", "        y[i] = 1.0f;\n    }\n#pragma GCC")
    assert rewrites(cpp_loops.TRANSFORMATIONS, "loop order", beside) == []


def test_what_is_no_python_has_no_rewrites() -> None:
    """A language model's answer may be anything."""
    assert rewrites(triton_loops.TRANSFORMATIONS, "stages", "def (:\n") == []


SHIPPED = [
    path
    for path in sorted(Path("kernels").glob("*/*"))
    if path.suffix in LANGUAGES and path.name not in ("reference.py", "vendors.py")
]


@pytest.mark.parametrize("path", SHIPPED, ids=str)
def test_rewrites_of_shipped_sources(path: Path) -> None:
    """Each is another text than its parent and siblings, and still parses."""
    text = path.read_text()
    found = [
        each
        for kind in LANGUAGES[path.suffix].values()
        for each in kind.find(Source(text=text, limits={"sm_count": 132}))
    ]
    assert found
    assert len({each.text for each in found} | {text}) == len(found) + 1
    for each in found:
        if path.suffix == ".py":
            ast.parse(each.text)
