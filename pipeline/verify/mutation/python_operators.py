"""Mutation operators for Triton kernels, on the syntax tree of a Python source.

In: the source. Out: edits within one line. Each operator is one function that looks at one node, and one line
in `OPERATORS`. Only functions are looked at; those without `@triton.jit` are host code.
"""

import ast
import itertools
from collections.abc import Callable, Iterator

from pipeline.verify.mutation.source_edit import Edit, Operator

_JIT = "jit"


class NodePlace:
    """The context of a node: its function, whether a loop encloses it, and offsets in the source."""

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


def functions(source: str) -> Iterator[Iterator[tuple[ast.AST, NodePlace]]]:
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


def _nodes(source: str, function: ast.FunctionDef, *, host: bool) -> Iterator[tuple[ast.AST, NodePlace]]:
    outside = NodePlace(source, function, in_loop=False, host=host)
    inside = NodePlace(source, function, in_loop=True, host=host)
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body

    def walk(node: ast.AST, place: NodePlace) -> Iterator[tuple[ast.AST, NodePlace]]:
        yield node, place
        within = inside if isinstance(node, ast.For | ast.While) else place
        for child in ast.iter_child_nodes(node):
            yield from walk(child, within)

    for statement in body:
        yield from walk(statement, outside)


_Change = tuple[int, int, str]
Look = Callable[[ast.AST, NodePlace], Iterator[_Change]]
"""A node and what is around it -> changes (start, end, text)."""

_NARROW = ("tl.float16", "tl.bfloat16")


def _drop_mask(node: ast.AST, place: NodePlace) -> Iterator[_Change]:
    """A load or store without its mask, or a mask without one of its conditions."""
    if isinstance(node, ast.Call) and called(node) in ("tl.load", "tl.store"):
        for keyword in node.keywords:
            if keyword.arg == "mask":
                before = max(place.end(each) for each in place.before(node, keyword))
                others = [each for each in node.keywords if each.arg == "other"]  # needs a mask
                yield before, max(place.end(each.value) for each in (keyword, *others)), ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        yield (*place.span(node), place.text(node.left))
        yield (*place.span(node), place.text(node.right))


def _off_by_one(node: ast.AST, place: NodePlace) -> Iterator[_Change]:
    """The end of a loop or of a comparison one too low, an offset one too high."""
    if isinstance(node, ast.Call) and called(node) in ("range", "tl.range") and len(node.args) > 1:
        end = place.end(node.args[1])
        yield end, end, " - 1"
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt):
        end = place.end(node.comparators[0])
        yield end, end, " - 1"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and _is_call(node.right, "tl.arange"):
        start = place.start(node.right)
        yield start, start, "1 + "


def _half_accumulate(node: ast.AST, place: NodePlace) -> Iterator[_Change]:
    """A sum that is rounded to 16 bits after every step."""
    for kind in _NARROW:
        match node:
            case ast.AugAssign(target=ast.Name(name), op=ast.Add()) if name in accumulators(place.function):
                sum_of = f"{name} + {place.text(node.value)}"
                yield (*place.span(node), f"{name} = ({sum_of}).to({kind}).to(tl.float32)")
            case ast.Assign(targets=[ast.Name(name)]) if place.in_loop and name in accumulators(
                place.function
            ):
                yield (*place.span(node.value), f"({place.text(node.value)}).to({kind}).to(tl.float32)")
            case ast.Call(args=[first, *_]) if called(node) == "tl.sum":
                end = place.end(node)
                rest = place.source[place.end(first) : end]
                yield place.start(first), end, f"({place.text(first)}).to({kind}){rest}.to(tl.float32)"


def _skip_last_tile(node: ast.AST, place: NodePlace) -> Iterator[_Change]:
    """A loop that ends one step early, a grid that is rounded down."""
    if isinstance(node, ast.Call) and called(node) in ("range", "tl.range") and len(node.args) > 2:
        end = place.end(node.args[1])
        yield end, end, f" - {place.text(node.args[2])}"
    if isinstance(node, ast.Call) and called(node) in ("triton.cdiv", "tl.cdiv"):
        total, part = (place.text(each) for each in node.args)
        yield (*place.span(node), f"({total} // {part})")


def _swap_axes(node: ast.AST, place: NodePlace) -> Iterator[_Change]:
    """The other axis: of a reduction, of a broadcast, of a stride."""
    match node:
        case ast.keyword(arg="axis", value=ast.Constant(value=int(axis))):
            yield (*place.span(node.value), str(1 - axis))
        case ast.Subscript(slice=ast.Tuple(elts=[ast.Slice(), ast.Constant(value=None)])):
            yield (*place.span(node.slice), "None, :")
        case ast.Subscript(slice=ast.Tuple(elts=[ast.Constant(value=None), ast.Slice()])):
            yield (*place.span(node.slice), ":, None")
        case ast.Name(name, ctx=ast.Load()) if name.endswith("stride"):
            strides = [each.arg for each in place.function.args.args if each.arg.endswith("stride")]
            if name in strides and len(strides) > 1:
                yield (*place.span(node), strides[strides.index(name) - 1])
        case ast.Call(func=ast.Attribute(attr="stride"), args=[ast.Constant(value=int(axis))]):
            yield (*place.span(node.args[0]), str(1 - axis))


def _drop_maximum(node: ast.AST, place: NodePlace) -> Iterator[_Change]:
    """An exponential of the value itself instead of its distance from the maximum."""
    match node:
        case ast.Call(args=[ast.BinOp(op=ast.Sub()) as difference]) if called(node).endswith(
            (".exp", ".exp2")
        ):
            yield (*place.span(difference), place.text(difference.left))


def _wrong_epsilon(node: ast.AST, place: NodePlace) -> Iterator[_Change]:
    """Ten times the epsilon, or none."""
    if not place.host and isinstance(node, ast.Name) and "eps" in node.id:
        yield (*place.span(node), f"10.0 * {node.id}")
        yield (*place.span(node), f"0.0 * {node.id}")


def _stale_accumulator(node: ast.AST, place: NodePlace) -> Iterator[_Change]:
    """A running value that is not brought up to date, not kept, or does not begin at zero."""
    match node:
        case ast.Assign(targets=[ast.Name(name)]) if not place.host and place.assigned_before(name, node):
            yield (*place.span(node), "pass")
        case ast.AugAssign(op=ast.Add()) if not place.host:
            start, end = place.end(node.target), place.start(node.value)
            yield start, end, " = "
        case ast.Call(args=[shape, kind]) if called(node) == "tl.zeros":
            yield (*place.span(node), f"tl.full({place.text(shape)}, 1.0, {place.text(kind)})")
        case ast.Call(args=[_, second, third, *_]) if called(node) == "tl.dot":
            yield place.end(second), place.end(third), ""


def _missing_sync(node: ast.AST, place: NodePlace) -> Iterator[_Change]:
    """A barrier left out."""
    if isinstance(node, ast.Expr) and _is_call(node.value, "tl.debug_barrier"):
        yield (*place.span(node), "pass")


def _int32_overflow(node: ast.AST, place: NodePlace) -> Iterator[_Change]:
    """An index that stays in 32 bits."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="to"), args=[kind]) if (
            place.text(kind) == "tl.int64"
        ):
            yield (*place.span(node), place.text(value))
        case ast.Call(args=[value, kind]) if called(node) == "tl.cast" and place.text(kind) == "tl.int64":
            yield (*place.span(node), place.text(value))


_OPERATIONS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "%"),
    ast.Mod: ("%", "//"),
    ast.Lt: ("<", "<="),
    ast.Eq: ("==", "!="),
    ast.BitAnd: ("&", "|"),
}


def _change_operator(node: ast.AST, place: NodePlace) -> Iterator[_Change]:
    """Another arithmetic or comparison operator."""
    match node:
        case ast.BinOp(left=left, op=operation, right=right):
            pass
        case ast.Compare(left=left, ops=[operation], comparators=[right]):
            pass
        case _:
            return
    if type(operation) in _OPERATIONS:
        written, other = _OPERATIONS[type(operation)]
        at = place.source.find(written, place.end(left), place.start(right))
        if at >= 0:
            yield at, at + len(written), other


def _change_constant(node: ast.AST, place: NodePlace) -> Iterator[_Change]:
    """Another number: 0 becomes 1, a whole number one more, a fraction 1 % more, minus infinity 0."""
    match node:
        case ast.Constant(value=bool()):
            return
        case ast.Constant(value=int(value)):
            yield (*place.span(node), str(value + 1))
        case ast.Constant(value=float(value)):
            yield (*place.span(node), repr(value * 1.01 or 1.0))
        case ast.Call(func=ast.Name("float"), args=[ast.Constant(value=str())]):
            yield (*place.span(node), "0.0")


_EXTREMA = {"tl.maximum": "tl.minimum", "tl.minimum": "tl.maximum", "tl.max": "tl.min", "tl.min": "tl.max"}


def _swap_extremum(node: ast.AST, place: NodePlace) -> Iterator[_Change]:
    """The smallest instead of the largest."""
    if isinstance(node, ast.Call) and called(node) in _EXTREMA:
        yield (*place.span(node.func), _EXTREMA[called(node)])


def _drop_cast(node: ast.AST, place: NodePlace) -> Iterator[_Change]:
    """Arithmetic or a store in the type at hand."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="to"), args=[kind]) if (
            place.text(kind) != "tl.int64"
        ):
            yield (*place.span(node), place.text(value))


def _return_early(node: ast.AST, place: NodePlace) -> Iterator[_Change]:
    """The work before a store or a launch is done, and it is left out."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        start = place.start(node)
        yield start, start, "return; "


def _is_call(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and called(node) == name


def _operator(look: Look) -> Operator:
    def find(source: str) -> Iterator[Edit]:
        for function in functions(source):
            for node, place in function:
                for start, end, text in look(node, place):
                    yield Edit(start=start, end=end, text=text, host=place.host)

    return find


OPERATORS: dict[str, Operator] = {
    "drop_mask": _operator(_drop_mask),
    "off_by_one": _operator(_off_by_one),
    "half_accumulate": _operator(_half_accumulate),
    "skip_last_tile": _operator(_skip_last_tile),
    "swap_axes": _operator(_swap_axes),
    "drop_maximum": _operator(_drop_maximum),
    "wrong_epsilon": _operator(_wrong_epsilon),
    "stale_accumulator": _operator(_stale_accumulator),
    "missing_sync": _operator(_missing_sync),
    "int32_overflow": _operator(_int32_overflow),
    "change_operator": _operator(_change_operator),
    "change_constant": _operator(_change_constant),
    "swap_extremum": _operator(_swap_extremum),
    "drop_cast": _operator(_drop_cast),
    "return_early": _operator(_return_early),
}
