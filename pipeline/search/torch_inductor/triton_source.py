"""Turn the Triton kernels that Inductor generated, with their Python wrapper, into one Triton source.

The kernels are unchanged, the wrapper becomes the entry point. Calls of libraries and views cannot be part of
it: CannotWrap names them.
"""

import ast
from collections.abc import Iterator, Sequence

from pipeline.records.planning.problem import Problem
from pipeline.search.torch_inductor.generated_code import (
    CannotWrap,
    GeneratedCode,
    TritonKernel,
    buffer_dtype,
    refuse_libraries,
    require_contiguous,
    returned_buffers,
    unsupported_step,
    wrapper_function,
)
from pipeline.search.torch_inductor.inductor_internals import KERNEL_IMPORTS

_HEAD = '''"""What torch.compile (torch {version}) generates for the reference, with symbolic sizes.

The kernels are unchanged; the entry point does what Inductor's Python wrapper does. Each kernel has the first
of the configurations that Inductor would time on a device ({configurations}).
"""

import torch
import triton
import triton.language as tl
{imports}'''
_IGNORED = ("clear", "set_device")
"""Methods that the wrapper calls and the entry point does not need."""


def wrap_triton(found: GeneratedCode, problem: Problem, entry: str) -> str:
    """One self-contained source from the code of one graph.

    Raises
    ------
    CannotWrap
        The code calls a library, or lays its result out in another way than the problem.
    """
    (module,) = found.modules
    statements = list(_flat(wrapper_function(ast.parse(module), "call").body))
    for statement in statements:
        refuse_libraries(statement)
    if not found.kernels:
        raise CannotWrap("torch.compile generated no Triton kernel")
    names = tuple(kernel.name for kernel in found.kernels)
    entry_point = _EntryPoint(problem, names, returned_buffers(statements, problem))
    lines = [line for statement in statements for line in entry_point.line(statement)]
    tried = ", ".join(f"{kernel.name}: {kernel.configurations}" for kernel in found.kernels)
    tensors = (*problem.names("input"), *problem.names("output"))
    parts = [
        _HEAD.format(version=found.version, configurations=tried, imports=KERNEL_IMPORTS),
        *(part for kernel in found.kernels for part in (kernel.text, *_launch(kernel))),
        "",
        f"def {entry}(*, {', '.join(tensors)}, **unused):",
        *(f"    {line}" for line in lines),
    ]
    return "\n".join(parts) + "\n"


def _flat(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Without the guard of the device: Triton's launch selects it."""
    for statement in statements:
        if isinstance(statement, ast.With):
            yield from _flat(statement.body)
        else:
            yield statement


def _launch(kernel: TritonKernel) -> Iterator[str]:
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


class _EntryPoint:
    """The statements of the wrapper as lines of the entry point."""

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
                return  # the launch checks the alignment of its arguments
            case _:
                raise unsupported_step(statement)

    def _inputs(self, arguments: list[ast.expr]) -> Iterator[str]:
        """The inputs in their order."""
        names = self._problem.names("input")
        if len(names) != len(arguments):
            raise CannotWrap(f"torch.compile takes {len(arguments)} arguments, expected {len(names)}")
        for argument, name in zip(arguments, names, strict=True):
            yield f"{ast.unparse(argument)} = {name}"

    def _buffer(self, name: str, made: ast.Call) -> str:
        """Allocated in each call, as torch does; a buffer that is returned is the memory of the output."""
        dtype, output = buffer_dtype(made), self._outputs.get(name)
        if output is None:
            like = self._problem.names("input")[0]
            size, stride = ast.unparse(made.args[0]), ast.unparse(made.args[1])
            return (
                f"{name} = torch.empty_strided({size}, {stride}, dtype=torch.{dtype}, device={like}.device)"
            )
        require_contiguous(name, made)
        declared = self._problem.tensors[output]
        if declared.layout == "row_strided":
            raise CannotWrap(f"torch.compile's results are contiguous, the rows of {output} may be strided")
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
    """A name, a number, a sum or a product of them, or the size or stride of a tensor."""
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
