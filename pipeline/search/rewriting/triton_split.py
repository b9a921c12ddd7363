"""Split-K. In: a Triton module. Out: rewrites whose sum over K is shared by several programs.

Few tiles with a long K leave most multiprocessors idle. Another axis of the grid cuts K into parts: a first
kernel stores the partial sums, a second one adds them in order and goes on as the kernel did. No atomic
operations, so equal inputs give equal bits, and any epilogue follows the whole sum (the workspace of CUTLASS'
split-K with parallel reduction is the same idea). It costs writing and reading the partial sums.
"""

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pipeline.records.results.diagnosed import FindingCode
from pipeline.search.rewriting.rewrite import Rewrite, Source, Transformation
from pipeline.search.rewriting.triton_module import (
    Function,
    Launch,
    Module,
    changed_copy,
    expression,
    parameters,
    statements,
    with_parameter,
)
from pipeline.search.rewriting.triton_sums import Sum, sums_of

_PARTS = (2, 4, 8)
_WORKSPACE, _SPLIT, _PARTIAL = "split_sums", "SPLIT_K", "_partial"


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
    """Where a program's partial sums are: [part][program][element]."""
    rows, *cols = found.shape
    size = " * ".join(found.shape)
    inside = f"tl.arange(0, {rows})"
    if cols:
        inside = f"{inside}[:, None] * {cols[0]} + tl.arange(0, {cols[0]})[None, :]"
    program = f"({part} * tl.num_programs(0) + tl.program_id(0)).to(tl.int64)"
    return f"{_WORKSPACE} + ({program} * ({size}) + {inside})"


def _first(ground: _Ground) -> Function:
    """Up to the loop, a part of the loop, and its sums stored."""
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
    """Up to the loop, the sum of the parts in place of it, and what follows it."""
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
    """Workspace, first and second kernel; None where the size of a sum is not known to the host."""
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
    """A parameter that has a device: one that is asked for its shape or its strides."""
    names = {each.arg for each in (*host.args.args, *host.args.kwonlyargs)}
    for node in ast.walk(host):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr="shape" | "stride" | "device" | "numel"):
                if name in names:
                    return name
    return None


def _replace(host: Function, launch: Launch, lines: list[ast.stmt]) -> bool:
    """The statements in place of the launch."""
    wanted = ast.dump(launch.statement)
    for node in ast.walk(host):
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            for at, statement in enumerate(block if isinstance(block, list) else ()):
                if ast.dump(statement) == wanted:
                    assert isinstance(block, list)
                    block[at : at + 1] = lines
                    return True
    return False
