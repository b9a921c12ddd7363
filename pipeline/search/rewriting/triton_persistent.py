"""Rewrites of a Triton kernel to persistent programs, which process one tile after the other.

Instead of one program per tile, as many programs as the device can hold are started, each with a loop over
tiles: no launch cost per tile, and no partial last wave.
"""

import ast
from collections.abc import Iterator

from pipeline.records.results.diagnosed import FindingCode
from pipeline.search.rewriting.rewrite import Rewrite, Source, Transformation
from pipeline.search.rewriting.triton_module import (
    Function,
    Launch,
    Module,
    assigned_in,
    body_of,
    called,
    changed_copy,
    expression,
    names_in,
    parameters,
    statements,
    with_parameter,
)

_RESIDENT = (1, 2, 4)
"""Programs per multiprocessor."""
_TILES, _TILE, _PROGRAM = "persistent_tiles", "persistent_tile", "persistent_program"


def _find(source: Source) -> Iterator[Rewrite]:
    """Kernels on a grid with one known extent, if the number of multiprocessors is known."""
    count = source.limits.get("sm_count")
    module = Module(source.text)
    for kernel in module.kernels():
        launches = module.launches(kernel) if count and _can_repeat(module, kernel) else None
        if launches is None or count is None:
            continue
        for resident in _RESIDENT:
            yield Rewrite(
                name=f"persistent={resident * count}",
                line=kernel.lineno,
                text=_persistent(module, kernel, launches, resident * count),
            )


TRANSFORMATION = Transformation(
    find=_find,
    called_for_by={
        FindingCode.WAVE_TAIL: "no last wave: programs go on to the next tile as they end one",
        FindingCode.LAUNCH_BOUND: "programs are started once, not once a tile",
        FindingCode.OCCUPANCY_BLOCKS: "the few programs that fit do all tiles",
        FindingCode.OCCUPANCY_REGISTERS: "the few programs that fit do all tiles",
        FindingCode.OCCUPANCY_SHARED_MEMORY: "the few programs that fit do all tiles",
    },
    keeps="each tile is computed once, by the same statements; nothing passes from one tile to the next",
)


def _can_repeat(module: Module, kernel: Function) -> bool:
    """Whether the body may run repeatedly: no early return, and no assignment to its parameters."""
    body = body_of(kernel)
    known = parameters(kernel)
    helpers = [each for each in module.kernels() if each.name in names_in(*body) and each is not kernel]
    calls = [node for function in (kernel, *helpers) for node in ast.walk(function) if called(node)]
    own = [node for node in calls if called(node) == "tl.program_id"]
    here = [node for node in ast.walk(kernel) if called(node) == "tl.program_id"]
    if not known or not here or len(own) != len(here) or not all(_first_axis(node) for node in here):
        return False
    if any(called(node) == "tl.num_programs" for node in calls) or assigned_in(*body) & set(known):
        return False
    taken = {_TILES, _TILE, _PROGRAM} & names_in(kernel)
    return not taken and not any(isinstance(node, ast.Return) for node in ast.walk(kernel))


def _first_axis(node: ast.AST) -> bool:
    assert isinstance(node, ast.Call)
    axis = [*node.args, *(keyword.value for keyword in node.keywords)]
    return len(axis) == 1 and isinstance(axis[0], ast.Constant) and axis[0].value == 0


def _persistent(module: Module, kernel: Function, launches: list[Launch], programs: int) -> str:
    hosts = {launch.host.name: changed_copy(launch.host) for launch in launches}
    for launch in launches:
        for node in ast.walk(hosts[launch.host.name]):
            if isinstance(node, ast.Call) and ast.dump(node) == ast.dump(launch.call):
                assert isinstance(node.func, ast.Subscript)
                node.func.slice = expression(f"(min({ast.unparse(launch.grid)}, {programs}),)")
                node.keywords.append(ast.keyword(arg=_TILES, value=launch.grid))
    return module.with_functions(
        {kernel.name: [_repeated(kernel)], **{name: [host] for name, host in hosts.items()}}
    )


def _repeated(kernel: Function) -> Function:
    changed = changed_copy(kernel)
    with_parameter(changed, _TILES)
    body = [_Numbered().visit(each) for each in body_of(changed)]
    loop = statements(
        f"for {_TILE} in tl.range(tl.program_id(0), {_TILES}, tl.num_programs(0)):\n"
        f"    {_PROGRAM} = tl.cast({_TILE}, tl.int32)"
    )[0]
    assert isinstance(loop, ast.For)
    loop.body += body
    changed.body[len(changed.body) - len(body) :] = [loop]
    return changed


class _Numbered(ast.NodeTransformer):
    """Replaces the program's number by the tile's."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return expression(_PROGRAM) if called(node) == "tl.program_id" else node
