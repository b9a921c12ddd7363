"""Split-K: the sum over K of a Triton kernel is shared by several programs.

Few tiles with a long K leave most multiprocessors idle. Another axis of the grid splits K into parts: a first
kernel stores the partial sums, a second one adds them in order and continues as the original kernel did. No
atomic operations are used, so equal inputs give equal bits, and any epilogue follows the whole sum (the same
idea as CUTLASS' split-K with parallel reduction). It costs writing and reading the partial sums.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pipeline.records.results.diagnosed import FindingCode
from pipeline.search.rewriting.rewrite import Rewrite, Source, Transformation
from pipeline.search.rewriting.triton_module import (
    Function,
    Launch,
    Module,
    assigned_in,
    called,
    changed_copy,
    expression,
    names_in,
    parameters,
    read_first,
    statements,
    with_parameter,
)

_PARTS = (2, 4, 8)
_WORKSPACE, _SPLIT, _PARTIAL = "split_sums", "SPLIT_K", "_partial"


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


class _Ground(NamedTuple):
    module: Module
    kernel: Function
    sum: Sum
    launches: list[Launch]


def _find(source: Source) -> Iterator[Rewrite]:
    """Kernels with a loop that only adds to one block of float32, on a grid of one extent."""
    module = Module(source.text)
    for kernel in module.kernels():
        launches = module.launches(kernel)
        taken = {_WORKSPACE, _SPLIT} & {*parameters(kernel)} or f"{kernel.name}{_PARTIAL}" in module.functions
        if launches is None or not parameters(kernel) or taken:
            continue
        for found in sums_of(module, kernel):
            ground = _Ground(module, kernel, found, launches)
            for parts in _PARTS:
                text = _split(ground, parts)
                if text is not None:
                    yield Rewrite(name=f"split-K={parts}", line=found.loop.lineno, text=text)


TRANSFORMATION = Transformation(
    find=_find,
    called_for_by={
        FindingCode.IDLE_MULTIPROCESSORS: "several programs share the sum of a tile",
        FindingCode.WAVE_TAIL: "more and shorter programs fill the last wave",
        FindingCode.FEW_LOADS_IN_FLIGHT: "several programs load for one tile",
    },
    keeps=(
        "the loop only adds terms to sums that begin at zero; the parts are added in a fixed order, but "
        "another one: the rounding changes"
    ),
)


def _split(ground: _Ground, parts: int) -> str | None:
    hosts: dict[str, Function] = {}
    for launch in ground.launches:
        host = hosts.setdefault(launch.host.name, changed_copy(launch.host))
        lines = _launched(ground, launch, parts)
        if lines is None or not _replace(host, launch, lines):
            return None
    return ground.module.with_functions(
        {
            ground.kernel.name: [_first(ground), _second(ground)],
            **{name: [each] for name, each in hosts.items()},
        },
        imports=("torch",),
    )


def _place(found: Sum, part: str) -> str:
    """Address of a program's partial sums: [part][program][element]."""
    rows, *cols = found.shape
    size = " * ".join(found.shape)
    inside = f"tl.arange(0, {rows})"
    if cols:
        inside = f"{inside}[:, None] * {cols[0]} + tl.arange(0, {cols[0]})[None, :]"
    program = f"({part} * tl.num_programs(0) + tl.program_id(0)).to(tl.int64)"
    return f"{_WORKSPACE} + ({program} * ({size}) + {inside})"


def _first(ground: _Ground) -> Function:
    """The first kernel: everything before the loop, one part of the loop, and a store of its sums."""
    found = ground.sum
    changed = changed_copy(ground.kernel)
    changed.name += _PARTIAL
    _add_parameters(changed)
    at = ground.kernel.body.index(found.loop)
    loop = changed.body[at]
    assert isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call)
    loop.iter.args = [
        expression("split_start"),
        expression(f"tl.minimum({found.limit}, split_start + split_steps * {found.step})"),
        expression(found.step),
    ]
    before = [
        "split_part = tl.program_id(1)",
        f"split_steps = tl.cdiv(tl.cdiv({found.limit}, {found.step}), {_SPLIT})",
        f"split_start = split_part * split_steps * {found.step}",
        *(f"{name} += split_part * split_steps * ({step})" for name, step in found.pointers),
    ]
    after = f"tl.store({_place(found, 'split_part')}, {found.name})"
    changed.body = [*changed.body[:at], *statements("\n".join(before)), loop, *statements(after)]
    return changed


def _second(ground: _Ground) -> Function:
    """The second kernel: the loop is replaced by the sum of the parts."""
    found = ground.sum
    changed = changed_copy(ground.kernel)
    _add_parameters(changed)
    at = ground.kernel.body.index(found.loop)
    loop = f"for split_part in range({_SPLIT}):\n    {found.name} += tl.load({_place(found, 'split_part')})"
    changed.body[at : at + 1] = statements(loop)
    return changed


def _add_parameters(kernel: Function) -> None:
    with_parameter(kernel, _WORKSPACE)
    with_parameter(kernel, _SPLIT, constant=True)


def _launched(ground: _Ground, launch: Launch, parts: int) -> list[ast.stmt] | None:
    """Workspace and launches of both kernels; None if the host does not know the size of a sum."""
    known = {keyword.arg: ast.unparse(keyword.value) for keyword in launch.call.keywords if keyword.arg}
    shape = [_on_host(each, known) for each in ground.sum.shape]
    tensor = _tensor(launch.host)
    if None in shape or tensor is None:
        return None
    extent = ast.unparse(launch.grid)
    size = ", ".join(f"({each})" for each in shape)
    lines = statements(
        f"{_WORKSPACE} = torch.empty(({parts}, {extent}, {size}), dtype=torch.float32,"
        f" device={tensor}.device)"
    )
    for suffix, grid in ((_PARTIAL, f"({extent}, {parts})"), ("", f"({extent},)")):
        (line,) = statements(ast.unparse(launch.statement))
        assert isinstance(line, ast.Expr) and isinstance(line.value, ast.Call)
        line.value.func = expression(f"{ground.kernel.name}{suffix}[{grid}]")
        line.value.keywords += [
            ast.keyword(arg=_WORKSPACE, value=expression(_WORKSPACE)),
            ast.keyword(arg=_SPLIT, value=ast.Constant(parts)),
        ]
        lines.append(line)
    return lines


def _on_host(size: str, known: Mapping[str, str]) -> str | None:
    return size if size.isdigit() else known.get(size)


def _tensor(host: Function) -> str | None:
    """A parameter that is a tensor: its shape, strides or device are read."""
    names = {each.arg for each in (*host.args.args, *host.args.kwonlyargs)}
    for node in ast.walk(host):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr="shape" | "stride" | "device" | "numel"):
                if name in names:
                    return name
    return None


def _replace(host: Function, launch: Launch, lines: list[ast.stmt]) -> bool:
    """Replace the launch by the statements."""
    wanted = ast.dump(launch.statement)
    for node in ast.walk(host):
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            for at, statement in enumerate(block if isinstance(block, list) else ()):
                if ast.dump(statement) == wanted:
                    assert isinstance(block, list)
                    block[at : at + 1] = lines
                    return True
    return False


def sums_of(module: Module, kernel: Function) -> Iterator[Sum]:
    """Such loops at the top level of the kernel."""
    one_axis = _axes(module, kernel) == {"0"}
    for at, statement in enumerate(kernel.body):
        if isinstance(statement, ast.For) and one_axis and not _stores(kernel.body[:at], module):
            found = _sum(kernel, at, statement)
            if found is not None:
                yield found


def _axes(module: Module, kernel: Function) -> set[str]:
    """Axes of the grid that the kernel reads; `?` for anything but the program's number."""
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
    """Whether the statements, or functions that they call, may write to memory."""
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
    """Whether the body consists of assignments and branches, without side effects, loops and exits."""
    for statement in body:
        if isinstance(statement, ast.If):
            if not (_simple(statement.body) and _simple(statement.orelse)):
                return False
        elif not isinstance(statement, ast.Assign | ast.AugAssign):
            return False
    names = {called(node) for statement in body for node in ast.walk(statement)}
    return not any(name.startswith(("tl.store", "tl.atomic")) for name in names)


def _advance(name: str, loop: ast.For, written: set[str]) -> str | None:
    """What each iteration adds to the name, if it is constant and nothing else changes the name."""
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
    """The shape of a float32 sum that starts at zero."""
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
