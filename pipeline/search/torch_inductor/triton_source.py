"""From what Inductor generated for a GPU to one Triton source. In: its kernels and wrapper. Out: a text.

Its kernels are taken as they are. Its Python wrapper, which allocates buffers and launches the kernels in
turn, becomes the entry; what is no kernel (an operator of a library) is told instead.
"""

import ast
from collections.abc import Iterator, Sequence

from pipeline.records.planning.problem import Problem
from pipeline.search.torch_inductor.cpp_source import (
    CannotWrap,
    dtype_of,
    function_named,
    refuse_libraries,
    require_contiguous,
    results,
)
from pipeline.search.torch_inductor.gpu_capture import Captured, CapturedKernel

_HEAD = '''"""What torch.compile (torch {version}) generates for the reference, with symbolic sizes.

Its kernels are as they were; the entry does what Inductor's Python wrapper does. Each kernel has the first
configuration that Inductor would try ({configurations}), unchanged by what it would measure on a device.
"""

import torch
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers
from torch._inductor.runtime.triton_helpers import libdevice
from torch._inductor.runtime.triton_helpers import math as tl_math
'''
_IGNORED = ("clear", "set_device")
"""Calls of the wrapper that our entry has no use for."""


def wrap_triton(found: Captured, problem: Problem, entry: str) -> str:
    """One self-contained source.

    Raises
    ------
    CannotWrap
        It calls a library, or its result is not laid out as the problem wants it.
    """
    (module,) = found.modules
    statements = list(_flat(function_named(ast.parse(module), "call").body))
    for statement in statements:
        refuse_libraries(statement)
    if not found.kernels:
        raise CannotWrap("torch.compile generated no Triton kernel")
    body = _Body(problem, tuple(kernel.name for kernel in found.kernels), results(statements, problem))
    lines = [line for statement in statements for line in body.line(statement)]
    tried = ", ".join(f"{kernel.name}: {kernel.configurations}" for kernel in found.kernels)
    names = (*problem.names("input"), *problem.names("output"))
    parts = [
        _HEAD.format(version=found.version, configurations=tried),
        *(part for kernel in found.kernels for part in (kernel.text, *_launch(kernel))),
        "",
        f"def {entry}(*, {', '.join(names)}, **unused):",
        *(f"    {line}" for line in lines),
    ]
    return "\n".join(parts) + "\n"


def _flat(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Without the device's guard, which Triton's own launch sees to."""
    for statement in statements:
        if isinstance(statement, ast.With):
            yield from _flat(statement.body)
        else:
            yield statement


def _launch(kernel: CapturedKernel) -> Iterator[str]:
    """A function that launches one kernel on the grid that Inductor's own launcher computes."""
    options = ", ".join(f"{name}={value}" for name, value in kernel.options.items())
    yield ""
    yield ""
    yield f"def _run_{kernel.name}({', '.join(kernel.parameters)}):"
    yield from (f"    {line}" for line in kernel.before)
    yield f"    grid = ({', '.join(kernel.grid)})"
    yield "    if 0 not in grid:"
    yield f"        {kernel.name}[grid]({', '.join(kernel.parameters)}, {options})"
    yield ""


class _Body:
    """The statements of the wrapper as lines of the entry."""

    def __init__(self, problem: Problem, kernels: tuple[str, ...], outputs: dict[str, str]) -> None:
        self._problem = problem
        self._kernels = kernels
        self._outputs = outputs

    def line(self, statement: ast.stmt) -> Iterator[str]:
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=arguments)], value=ast.Name("args")):
                yield from self._inputs(arguments)
            case ast.Assign(
                targets=[ast.Name(name)], value=ast.Call(func=ast.Name("empty_strided_cuda")) as made
            ):
                yield self._buffer(name, made)
            case ast.Assign(targets=[ast.Name()], value=value) if _is_plain(value):
                yield ast.unparse(statement)
            case ast.Expr(ast.Call(func=ast.Attribute(value=ast.Name(name), attr="run"), args=arguments)):
                yield self._call(name, arguments)
            case ast.Expr(ast.Call(func=ast.Attribute(attr=name))) if name in _IGNORED:
                return
            case ast.Expr(ast.Call(func=ast.Name("assert_size_stride"))) | ast.Delete() | ast.Return():
                return
            case ast.Assign(value=ast.Call(func=ast.Name("copy_if_misaligned" | "get_raw_stream"))):
                return  # the launch itself looks at the alignment of what it gets
            case _:
                text = ast.unparse(statement).splitlines()[0]
                raise CannotWrap(f"torch.compile generated a step that is no kernel: {text}")

    def _inputs(self, arguments: list[ast.expr]) -> Iterator[str]:
        """In the order in which they were given."""
        names = self._problem.names("input")
        if len(names) != len(arguments):
            raise CannotWrap(f"torch.compile takes {len(arguments)} arguments, expected {len(names)}")
        for argument, name in zip(arguments, names, strict=True):
            yield f"{ast.unparse(argument)} = {name}"

    def _buffer(self, name: str, made: ast.Call) -> str:
        """Made anew in each call, as torch's are; one that is returned is the output's own memory."""
        dtype, output = dtype_of(made), self._outputs.get(name)
        if output is None:
            like = self._problem.names("input")[0]
            size, stride = ast.unparse(made.args[0]), ast.unparse(made.args[1])
            return (
                f"{name} = torch.empty_strided({size}, {stride}, dtype=torch.{dtype}, device={like}.device)"
            )
        require_contiguous(name, made)
        declared = self._problem.tensors[output]
        if declared.layout == "row_strided":
            raise CannotWrap(f"torch.compile's results have no rows apart, {output} may have")
        if declared.dtype != dtype:
            raise CannotWrap(f"torch.compile's result is {dtype}, {output} is another type")
        return f"{name} = {output}"

    def _call(self, name: str, arguments: list[ast.expr]) -> str:
        if name not in self._kernels:
            raise CannotWrap(f"torch.compile calls {name}, which is none of its kernels")
        for argument in arguments:
            if not _is_plain(argument):
                raise CannotWrap(f"a kernel is called on {ast.unparse(argument)}")
        return f"_run_{name}({', '.join(map(ast.unparse, arguments))})"


def _is_plain(value: ast.expr) -> bool:
    """A name, a number, a sum or a product of such, or what a tensor says of its size and strides."""
    match value:
        case ast.Name() | ast.Constant(value=int()):
            return True
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv(), right):
            return _is_plain(left) and _is_plain(right)
        case ast.Subscript(ast.Name(), ast.Constant(value=int())):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr="size" | "stride"), args=[], keywords=[]):
            return True
    return False
