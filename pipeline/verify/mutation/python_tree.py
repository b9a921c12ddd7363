"""The syntax tree of a Python source as operators see it: nodes of functions, and where they lie."""

import ast
import itertools
from collections.abc import Iterator

_JIT = "jit"


class Place:
    """What is around a node: its function, whether a loop encloses it, and where nodes lie in the source."""

    def __init__(self, source: str, function: ast.FunctionDef, *, in_loop: bool, host: bool) -> None:
        self.source = source
        self.function = function
        self.in_loop = in_loop
        self.host = host
        lengths = (len(line) for line in source.split("\n"))
        self._lines = [0, *itertools.accumulate(length + 1 for length in lengths)]

    def start(self, node: ast.expr | ast.stmt) -> int:
        """Offset of the first character."""
        return self._lines[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        """Offset after the last character."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._lines[node.end_lineno - 1] + node.end_col_offset

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Both offsets."""
        return self.start(node), self.end(node)

    def text(self, node: ast.expr | ast.stmt) -> str:
        """The node as it is written, in parentheses where it is an operation."""
        written = self.source[self.start(node) : self.end(node)]
        return f"({written})" if isinstance(node, ast.BinOp | ast.Compare | ast.IfExp) else written

    def before(self, call: ast.Call, keyword: ast.keyword) -> Iterator[ast.expr]:
        """The arguments of a call that stand before one of its keywords."""
        for each in (*call.args, *(other.value for other in call.keywords)):
            if self.start(each) < self.start(keyword.value):
                yield each

    def assigned_before(self, name: str, node: ast.stmt) -> bool:
        """Whether a statement outside of loops gives the name its first value."""
        return any(
            isinstance(target, ast.Name) and target.id == name
            for other in self.function.body
            if isinstance(other, ast.Assign) and self.start(other) < self.start(node)
            for target in other.targets
        )


def functions(source: str) -> Iterator[Iterator[tuple[ast.AST, Place]]]:
    """For every function, its nodes in the order of the source; without docstring, decorators, signature.

    The source is Latin-1 text, whose characters are the bytes that `ast` counts.
    """
    tree = ast.parse(source.encode("latin-1"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            host = not any(_JIT in ast.dump(decorator) for decorator in node.decorator_list)
            yield _nodes(source, node, host=host)


def called(call: ast.Call) -> str:
    """`tl.load` for `tl.load(…)`; empty where something else than a name is called."""
    try:
        return ast.unparse(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else ""
    except ValueError:
        return ""


def accumulators(function: ast.FunctionDef) -> frozenset[str]:
    """Names that begin as `tl.zeros(…)` or `tl.full(…)`."""
    found = set()
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Call() as call):
                if called(call) in ("tl.zeros", "tl.full"):
                    found.add(name)
    return frozenset(found)


def _nodes(source: str, function: ast.FunctionDef, *, host: bool) -> Iterator[tuple[ast.AST, Place]]:
    outside = Place(source, function, in_loop=False, host=host)
    inside = Place(source, function, in_loop=True, host=host)
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body

    def walk(node: ast.AST, place: Place) -> Iterator[tuple[ast.AST, Place]]:
        yield node, place
        within = inside if isinstance(node, ast.For | ast.While) else place
        for child in ast.iter_child_nodes(node):
            yield from walk(child, within)

    for statement in body:
        yield from walk(statement, outside)
