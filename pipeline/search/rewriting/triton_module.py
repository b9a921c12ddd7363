"""A Python module with Triton kernels as a syntax tree: kernels, launches, and the text after a change.

A changed function is generated from its tree and loses its comments; everything else stays as it was.
"""

import ast
import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

Function = ast.FunctionDef


class Launch(NamedTuple):
    """`kernel[grid](…)`, a statement of a host function."""

    host: Function
    kernel: Function
    statement: ast.Expr
    call: ast.Call
    grid: ast.expr
    """Its only extent."""


class Module:
    """The functions and imports of a text; both are empty if it is not Python."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            body = ast.parse(text).body
        except (SyntaxError, ValueError):
            body = []
        self.functions = {node.name: node for node in body if isinstance(node, Function)}
        self.imports = {
            alias.name
            for node in body
            if isinstance(node, ast.Import)
            for alias in node.names
            if not alias.asname
        }

    def kernels(self) -> Iterator[Function]:
        """Functions that Triton compiles."""
        return (each for each in self.functions.values() if is_jit(each))

    def launches(self, kernel: Function) -> list[Launch] | None:
        """All launches of a kernel; None if one has a grid with several extents, or another form."""
        found: list[Launch] = []
        for host in self.functions.values():
            if is_jit(host):
                continue
            mentioned = sum(isinstance(each, ast.Name) and each.id == kernel.name for each in ast.walk(host))
            here = list(self._statements(host, kernel))
            if mentioned != len(here):
                return None
            found += here
        return found or None

    def with_functions(
        self, changed: Mapping[str, Sequence[Function]], *, imports: Iterable[str] = ()
    ) -> str:
        """The text with functions replaced, and imports added unless they are there."""
        lines = self.text.split("\n")
        for name, several in sorted(changed.items(), key=lambda each: -self.functions[each[0]].lineno):
            node = self.functions[name]
            start = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
            assert node.end_lineno is not None
            written = "\n\n\n".join(ast.unparse(ast.fix_missing_locations(each)) for each in several)
            lines[start : node.end_lineno] = written.split("\n")
        missing = [f"import {name}" for name in imports if name not in self.imports]
        first = next(
            (number for number, line in enumerate(lines) if line.startswith(("import ", "from "))), 0
        )
        lines[first:first] = missing
        return "\n".join(lines)

    def _statements(self, host: Function, kernel: Function) -> Iterator[Launch]:
        for node in ast.walk(host):
            match node:
                case ast.Expr(
                    value=ast.Call(func=ast.Subscript(value=ast.Name(id=name), slice=grid)) as call
                ):
                    extent = _extent(host, grid)
                    if name == kernel.name and extent is not None:
                        yield Launch(host, kernel, node, call, extent)


def is_jit(function: Function) -> bool:
    """Whether it has Triton's decorator."""
    return any("jit" in ast.unparse(decorator) for decorator in function.decorator_list)


def changed_copy(function: Function) -> Function:
    """A copy of the function, to be changed."""
    return copy.deepcopy(function)


def body_of(function: Function) -> list[ast.stmt]:
    """Its statements without the docstring."""
    return function.body[1:] if ast.get_docstring(function) is not None else function.body


def parameters(function: Function) -> list[str]:
    """Names of the parameters; empty if one has a default or is not positional."""
    given = function.args
    plain = not (given.defaults or given.kwonlyargs or given.vararg or given.kwarg or given.posonlyargs)
    return [each.arg for each in given.args] if plain else []


def with_parameter(function: Function, name: str, *, constant: bool = False) -> None:
    """Add a parameter at the end."""
    annotation = ast.parse("tl.constexpr", mode="eval").body if constant else None
    function.args.args.append(ast.arg(arg=name, annotation=annotation))


def expression(text: str) -> ast.expr:
    """Parse an expression."""
    return ast.parse(text, mode="eval").body


def statements(text: str) -> list[ast.stmt]:
    """Parse statements."""
    return ast.parse(text).body


def called(node: ast.AST) -> str:
    """The dotted name of what is called; empty for anything else."""
    known = isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    return ast.unparse(node.func) if known else ""  # type: ignore[attr-defined]


def names_in(*nodes: ast.AST) -> set[str]:
    """All names that are read or assigned."""
    return {each.id for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name)}


def assigned_in(*nodes: ast.AST) -> set[str]:
    """Names that are assigned."""
    return {
        each.id
        for node in nodes
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }


def read_first(body: Sequence[ast.stmt]) -> set[str]:
    """Names that may be read before the body assigns them."""
    return _read_first(body, set())


def _read_first(body: Sequence[ast.stmt], known: set[str]) -> set[str]:
    """Adds to `known` the names that are assigned on every path."""
    read: set[str] = set()
    for statement in body:
        match statement:
            case ast.If(test=test, body=then, orelse=other):
                read |= names_in(test) - known
                ways = [set(known), set(known)]
                read |= _read_first(then, ways[0]) | _read_first(other, ways[1])
                known |= ways[0] & ways[1]
            case ast.For(target=target, iter=iterated, body=inner):
                read |= names_in(iterated) - known
                read |= _read_first(inner, known | assigned_in(target))
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                read |= ({name} | names_in(value)) - known
                known.add(name)
            case _:
                written = assigned_in(statement)
                read |= {
                    each.id
                    for each in ast.walk(statement)
                    if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
                } - known
                known |= written
    return read


def _extent(host: Function, grid: ast.expr) -> ast.expr | None:
    """The only extent of a grid, as an expression that is valid at the launch."""
    if isinstance(grid, ast.Tuple):
        return grid.elts[0] if len(grid.elts) == 1 and not isinstance(grid.elts[0], ast.Starred) else None
    if not isinstance(grid, ast.Name):
        return None
    values = [
        node.value
        for node in ast.walk(host)
        if isinstance(node, ast.Assign) and grid.id in names_in(*node.targets)
    ]
    known = len(values) == 1 and isinstance(values[0], ast.Tuple) and len(values[0].elts) == 1
    return expression(f"{grid.id}[0]") if known else None
