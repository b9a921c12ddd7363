"""Loops of a Triton kernel that do nothing but add. In: a kernel. Out: what they add to, how they count."""

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pipeline.search.rewriting.triton_module import (
    Function,
    Module,
    assigned_in,
    called,
    names_in,
    read_first,
)


class Sum(NamedTuple):
    """A loop from 0 to `limit` whose only results are a block of float32 sums and pointers that advance."""

    loop: ast.For
    name: str
    shape: tuple[str, ...]
    """One or two extents: numbers, or parameters of the kernel."""
    limit: str
    step: str
    pointers: tuple[tuple[str, str], ...]
    """Each with what one iteration adds to it."""


def sums_of(module: Module, kernel: Function) -> Iterator[Sum]:
    """Such loops at the kernel's own level."""
    one_axis = _axes(module, kernel) == {"0"}
    for at, statement in enumerate(kernel.body):
        if isinstance(statement, ast.For) and one_axis and not _stores(kernel.body[:at], module):
            found = _sum(kernel, at, statement)
            if found is not None:
                yield found


def _axes(module: Module, kernel: Function) -> set[str]:
    """Axes of the grid that are asked for; `?` for anything but the program's number."""
    functions = [kernel, *(each for each in module.kernels() if each.name in names_in(kernel))]
    found: set[str] = set()
    for node in (node for function in functions for node in ast.walk(function)):
        if called(node) == "tl.num_programs":
            found.add("?")
        elif called(node) == "tl.program_id":
            assert isinstance(node, ast.Call)
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            found.add(ast.unparse(given[0]) if given else "?")
    return found


def _stores(body: Sequence[ast.stmt], module: Module) -> bool:
    """Whether anything may be written to memory, here or in what is called here."""
    names = {called(node) for statement in body for node in ast.walk(statement)}
    texts = [ast.unparse(module.functions[name]) for name in names if name in module.functions]
    writes = ("tl.store", "tl.atomic")
    return any(name.startswith(writes) for name in names) or any(
        each in text for text in texts for each in writes
    )


def _sum(kernel: Function, at: int, loop: ast.For) -> Sum | None:
    counted = _counted(loop)
    before, after = kernel.body[:at], kernel.body[at + 1 :]
    if counted is None or not isinstance(loop.target, ast.Name) or loop.orelse:
        return None
    written = assigned_in(*loop.body)
    carried = read_first(loop.body) & written
    pointers = {name: _advance(name, loop, written) for name in carried}
    sums = [name for name, step in pointers.items() if step is None]
    shape = _zeros(sums[0], before) if len(sums) == 1 else None
    if shape is None or not _only_adds(sums[0], loop) or not _simple(loop.body):
        return None
    left = written | {loop.target.id}
    if (left - {sums[0]}) & read_first(after):
        return None
    parameters = {each.arg for each in kernel.args.args}
    if not all(each.isdigit() or each in parameters for each in shape) or not 1 <= len(shape) <= 2:
        return None
    advanced = tuple(sorted((name, step) for name, step in pointers.items() if step is not None))
    return Sum(loop, sums[0], shape, *counted, advanced)


def _counted(loop: ast.For) -> tuple[str, str] | None:
    """Limit and step of a loop from 0."""
    if not isinstance(loop.iter, ast.Call) or called(loop.iter) not in ("range", "tl.range"):
        return None
    match loop.iter.args:
        case [limit]:
            return ast.unparse(limit), "1"
        case [ast.Constant(value=0), limit, *step] if len(step) <= 1:
            simple = not step or isinstance(step[0], ast.Name | ast.Constant)
            return (ast.unparse(limit), ast.unparse(step[0]) if step else "1") if simple else None
    return None


def _simple(body: Sequence[ast.stmt]) -> bool:
    """Assignments, and branches over such: no effects, no loops, no way out."""
    for statement in body:
        if isinstance(statement, ast.If):
            if not (_simple(statement.body) and _simple(statement.orelse)):
                return False
        elif not isinstance(statement, ast.Assign | ast.AugAssign):
            return False
    names = {called(node) for statement in body for node in ast.walk(statement)}
    return not any(name.startswith(("tl.store", "tl.atomic")) for name in names)


def _advance(name: str, loop: ast.For, written: set[str]) -> str | None:
    """What each iteration adds to it, if always the same and nothing else happens to it."""
    assert isinstance(loop.target, ast.Name)
    changes = [each for each in loop.body if name in assigned_in(each)]
    match changes:
        case [ast.AugAssign(op=ast.Add(), target=ast.Name(), value=value)]:
            varies = names_in(value) & (written | {loop.target.id})
            return None if varies or any(called(node) for node in ast.walk(value)) else ast.unparse(value)
    return None


def _only_adds(name: str, loop: ast.For) -> bool:
    """`sum += term`, `sum = sum + term` or `sum = tl.dot(a, b, sum)`; a term does not read the sum."""
    for statement in loop.body:
        if name not in names_in(statement):
            continue
        match statement:
            case ast.AugAssign(op=ast.Add(), target=ast.Name(id=target), value=term):
                adds = target == name and name not in names_in(term)
            case ast.Assign(targets=[ast.Name(id=target)], value=value):
                adds = target == name and _added(name, value)
            case _:
                adds = False
        if not adds:
            return False
    return True


def _added(name: str, value: ast.expr) -> bool:
    match value:
        case ast.BinOp(op=ast.Add(), left=ast.Name(id=left), right=term):
            return left == name and name not in names_in(term)
        case ast.Call() if called(value) == "tl.dot":
            rest = [
                *value.args[:2],
                *value.args[3:],
                *(each.value for each in value.keywords if each.arg != "acc"),
            ]
            sums = [*value.args[2:3], *(each.value for each in value.keywords if each.arg == "acc")]
            into = len(sums) == 1 and isinstance(sums[0], ast.Name) and sums[0].id == name
            return into and name not in names_in(*rest)
    return False


def _zeros(name: str, before: Sequence[ast.stmt]) -> tuple[str, ...] | None:
    """The shape that a sum of float32 begins with, where it begins at zero."""
    writing = [each for each in before if name in assigned_in(each)]
    match writing:
        case [
            ast.Assign(targets=[ast.Name()], value=ast.Call(args=[shape, *kind], keywords=keywords) as call)
        ]:
            kinds = [*kind, *(each.value for each in keywords if each.arg == "dtype")]
            known = called(call) == "tl.zeros" and [ast.unparse(each) for each in kinds] == ["tl.float32"]
            if known and isinstance(shape, ast.List | ast.Tuple):
                return tuple(ast.unparse(each) for each in shape.elts)
    return None
