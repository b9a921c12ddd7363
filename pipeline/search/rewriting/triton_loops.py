"""Rewrites of loops in Triton kernels: software pipelining and unrolling.

Both are arguments of `tl.range` (see the documentation of `triton.language.range`): how many iterations are
in flight, and how often the body is repeated in the code.
"""

import ast
import itertools
from collections.abc import Iterator, Mapping

from pipeline.records.results.diagnosed import FindingCode
from pipeline.search.rewriting.rewrite import Rewrite, Source, Transformation

_STAGES = (2, 3, 4)
_FACTORS = (2, 4)


def _stages(given: Source) -> Iterator[Rewrite]:
    """Loops that load: more iterations in flight."""
    for loop, source in _loops(given.text):
        if source.calls_something(loop):
            for stages in _STAGES:
                yield from source.with_keyword(loop, "num_stages", stages, f"stages={stages}")


def _unroll(given: Source) -> Iterator[Rewrite]:
    """Innermost loops: the body several times in the code."""
    for loop, source in _loops(given.text):
        if not any(isinstance(node, ast.For) for child in loop.body for node in ast.walk(child)):
            for factor in _FACTORS:
                yield from source.with_keyword(loop, "loop_unroll_factor", factor, f"unroll={factor}")


TRANSFORMATIONS: Mapping[str, Transformation] = {
    "stages": Transformation(
        find=_stages,
        called_for_by={
            FindingCode.FEW_LOADS_IN_FLIGHT: "loads of later iterations are under way",
            FindingCode.MEMORY_BOUND: "loads of later iterations are under way",
            FindingCode.FAR_FROM_CEILINGS: "loads of later iterations are under way",
        },
        keeps="the compiler overlaps iterations as far as they do not depend on each other",
    ),
    "unroll": Transformation(
        find=_unroll,
        called_for_by={
            FindingCode.FEW_LOADS_IN_FLIGHT: "loads of several iterations are issued together",
            FindingCode.COMPUTE_BOUND: "fewer instructions that only count",
            FindingCode.FAR_FROM_CEILINGS: "independent instructions of several iterations hide latencies",
        },
        keeps="the same iterations in the same order",
    ),
}


class _Source:
    """A module as bytes: the columns of `ast` count bytes."""

    def __init__(self, text: str) -> None:
        self._bytes = text.encode()
        lengths = (len(line) + 1 for line in self._bytes.split(b"\n"))
        self._lines = [0, *itertools.accumulate(lengths)]

    def calls_something(self, loop: ast.For) -> bool:
        """Whether the body has a call: a load is one, and may be in another function."""
        return any(isinstance(node, ast.Call) for child in loop.body for node in ast.walk(child))

    def with_keyword(self, loop: ast.For, key: str, value: int, name: str) -> Iterator[Rewrite]:
        """The loop over `tl.range` with this keyword, unless it has that value."""
        assert isinstance(loop.iter, ast.Call)
        call = loop.iter
        known = next((each for each in call.keywords if each.arg == key), None)
        if known is not None:
            if isinstance(known.value, ast.Constant) and known.value.value == value:
                return
            piece, start, end = str(value), self._start(known.value), self._end(known.value)
            changed = self._bytes[:start] + piece.encode() + self._bytes[end:]
        else:
            end = self._end(call) - 1
            changed = self._bytes[:end].rstrip(b", ") + f", {key}={value}".encode() + self._bytes[end:]
            start, end = self._start(call.func), self._end(call.func)
            changed = changed[:start] + b"tl.range" + changed[end:]
        yield Rewrite(name=name, line=loop.lineno, text=changed.decode())

    def _start(self, node: ast.expr) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.end_lineno - 1] + node.end_col_offset


def _loops(text: str) -> Iterator[tuple[ast.For, _Source]]:
    """Loops over `range` and `tl.range` in kernels; empty if the text is not Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    source = _Source(text)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and _is_kernel(function):
            for node in ast.walk(function):
                if isinstance(node, ast.For) and _counts(node.iter):
                    yield node, source


def _counts(iterated: ast.expr) -> bool:
    known = isinstance(iterated, ast.Call) and ast.unparse(iterated.func) in ("range", "tl.range")
    return known and bool(iterated.args)  # type: ignore[attr-defined]


def _is_kernel(function: ast.FunctionDef) -> bool:
    return any("jit" in ast.unparse(decorator) for decorator in function.decorator_list)
