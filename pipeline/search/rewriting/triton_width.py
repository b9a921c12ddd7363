"""Rewrites of a Triton kernel's launch that change how many elements a thread handles at once.

A thread loads the neighboring elements that it owns with one instruction (up to 16 bytes): those of a block
divided by the program's threads. With fewer warps, or a longer block, it owns more.
"""

import ast
from collections.abc import Iterator

from pipeline.records.results.diagnosed import FindingCode
from pipeline.search.rewriting.rewrite import Rewrite, Source, Transformation
from pipeline.search.rewriting.triton_module import (
    Function,
    Module,
    body_of,
    changed_copy,
    is_jit,
    statements,
)

_WARPS = "num_warps"


def _find(source: Source) -> Iterator[Rewrite]:
    """Host functions that pass a number of warps, or the step of a kernel's loop, on unchanged."""
    module = Module(source.text)
    for host in module.functions.values():
        if is_jit(host):
            continue
        taken = {each.arg for each in (*host.args.args, *host.args.kwonlyargs)}
        handed = _passed_on(module, host)
        for name in sorted(taken & handed):
            if name == _WARPS:
                yield _with(module, host, f"{name} = max(1, {name} // 2)", "vector width: half the warps")
            else:
                yield _with(module, host, f"{name} = 2 * {name}", f"vector width: {name} times 2")


TRANSFORMATION = Transformation(
    find=_find,
    called_for_by={
        FindingCode.NARROW_LOADS: "a thread owns more neighbors, and loads them together",
        FindingCode.NARROW_STORES: "a thread owns more neighbors, and stores them together",
        FindingCode.MEMORY_BOUND: "fewer, wider accesses for the same bytes",
        FindingCode.FEW_LOADS_IN_FLIGHT: "each thread has more bytes on the way",
        FindingCode.BARRIERS: "fewer warps wait for each other, and less often",
    },
    keeps="the same as with another value of the tunable: everything in the launch follows from it",
)


def _passed_on(module: Module, host: Function) -> set[str]:
    """Names that are passed as the number of warps, or as the step of a kernel's loop."""
    found: set[str] = set()
    for node in ast.walk(host):
        match node:
            case ast.Call(func=ast.Subscript(value=ast.Name(id=kernel)), keywords=keywords):
                steps = _steps(module.functions.get(kernel))
                for keyword in keywords:
                    if isinstance(keyword.value, ast.Name) and keyword.arg in {_WARPS, *steps}:
                        if keyword.arg == _WARPS and keyword.value.id != _WARPS:
                            continue
                        found.add(keyword.value.id)
    written = {
        each.id for each in ast.walk(host) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    return found - written


def _steps(kernel: Function | None) -> set[str]:
    """Constants that are the step of a loop of the kernel."""
    if kernel is None:
        return set()
    constants = {each.arg for each in kernel.args.args if each.annotation is not None}
    return constants & {
        ast.unparse(node.iter.args[2])
        for node in ast.walk(kernel)
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and len(node.iter.args) == 3
    }


def _with(module: Module, host: Function, line: str, name: str) -> Rewrite:
    """The host function with this line inserted at its start."""
    changed = changed_copy(host)
    at = len(changed.body) - len(body_of(changed))
    changed.body[at:at] = statements(line)
    return Rewrite(name=name, line=host.lineno, text=module.with_functions({host.name: [changed]}))
