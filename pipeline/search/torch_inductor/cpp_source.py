"""Turn the C++ kernels that Inductor generated, with their Python wrapper, into one C++ source.

The wrapper becomes the entry point. Calls of libraries and views with a layout of their own cannot be part of
it: CannotWrap names them.
"""

import ast
from collections.abc import Iterator

from pipeline.records.planning.problem import Problem
from pipeline.records.record import Record
from pipeline.search.torch_inductor.generated_code import (
    C_TYPES,
    CannotWrap,
    GeneratedCode,
    buffer_dtype,
    refuse_libraries,
    require_contiguous,
    returned_buffers,
    unsupported_step,
    wrapper_function,
)

HEADER = "#include <torch/csrc/inductor/cpp_prefix.h>"
_ALIGNMENT = 64  # bytes, as torch's own buffers


class _Kernel(Record, frozen=True, kw_only=True):
    types: tuple[str, ...]
    code: str


def wrap_cpp(found: GeneratedCode, problem: Problem, entry: str) -> str:
    """One self-contained source from the code of one graph.

    Raises
    ------
    CannotWrap
        The code calls a library, or lays its result out in another way than the problem.
    """
    (module,) = found.modules
    tree = ast.parse(module)
    kernels = dict(_kernels(tree))
    statements = wrapper_function(tree, "call").body
    for statement in statements:
        refuse_libraries(statement)
    entry_point = _EntryPoint(problem, kernels, returned_buffers(statements, problem), _shapes(tree))
    lines = [line for statement in statements for line in entry_point.line(statement)]
    parts = [
        f"// What torch.compile (torch {found.version}) generates for the reference, with symbolic sizes.",
        "// The kernels are unchanged; the entry point does what Inductor's Python wrapper does.",
        "#define TORCH_INDUCTOR_CPP_WRAPPER",
        "#define STANDALONE_TORCH_HEADER",
        "#define C10_USING_CUSTOM_GENERATED_MACROS",
        *([f"#define {found.capability}"] if found.capability else []),
        HEADER,
        "",
        "#include <cstdint>",
        "#include <cstdlib>",
        "#include <memory>",
        "",
        *(_renamed(name, kernel.code) for name, kernel in kernels.items()),
        f'extern "C" int {entry}({", ".join(_parameters(problem))}) {{',
        *(f"    {line}" for line in lines),
        "    return 0;",
        "}",
    ]
    return "\n".join(parts) + "\n"


def _kernels(tree: ast.Module) -> Iterator[tuple[str, _Kernel]]:
    """Name -> kernel, of `name = async_compile.cpp_pybinding([types], '''code''')`."""
    for node in tree.body:
        match node:
            case ast.Assign(
                targets=[ast.Name(name)],
                value=ast.Call(
                    func=ast.Attribute(attr="cpp_pybinding"), args=[types, ast.Constant(str(code)), *_]
                ),
            ):
                yield name, _Kernel(types=tuple(ast.literal_eval(types)), code=code)


def _shapes(tree: ast.Module) -> dict[str, tuple[int, ...]]:
    """Argument -> its shape in the workload; arguments are in the order in which the graph uses them."""
    found: dict[str, tuple[int, ...]] = {}
    for node in wrapper_function(tree, "get_args").body:
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Call(args=[ast.Tuple() as shape, *_])):
                found[name] = tuple(ast.literal_eval(shape))
    return found


def _renamed(name: str, code: str) -> str:
    """Inductor calls every kernel `kernel`; in one file each needs its own name."""
    text = code.replace(HEADER, "").strip()
    for head in ('extern "C"  void  kernel(', 'extern "C" void kernel('):
        if head in text:
            return f"static {text.replace(head, f'void {name}(', 1).strip()}\n"
    raise CannotWrap(f"{name}: its C++ starts in another way: this version of torch is not supported")


def _parameters(problem: Problem) -> Iterator[str]:
    for role in ("input", "output"):
        for name in problem.names(role):
            const = "const " if role == "input" else ""
            yield f"{const}{C_TYPES[problem.tensors[name].dtype]}* {name}"
    yield from (f"std::int64_t {name}" for name in problem.dimensions)
    names = (*problem.names("input"), *problem.names("output"))
    yield from (f"std::int64_t {_stride(name)}" for name in names if _strided(problem, name))
    yield from (f"double {name}" for name in problem.scalars)


def _strided(problem: Problem, name: str) -> bool:
    return problem.tensors[name].layout == "row_strided"


def _stride(name: str) -> str:
    return f"stride_of_{name}"


class _EntryPoint:
    """The statements of the Python wrapper as lines of C++."""

    def __init__(
        self,
        problem: Problem,
        kernels: dict[str, _Kernel],
        outputs: dict[str, str],
        shapes: dict[str, tuple[int, ...]],
    ) -> None:
        self._problem = problem
        self._kernels = kernels
        self._left = list(problem.names("input"))
        self._known: set[str] = set()
        self._outputs = outputs
        self._shapes = shapes

    def line(self, statement: ast.stmt) -> Iterator[str]:
        match statement:
            case ast.Assign(targets=[ast.Tuple()], value=ast.Name("args")) | ast.Delete():
                return
            case ast.Expr(ast.Call(func=ast.Attribute(value=ast.Name("args"), attr="clear"))):
                return
            case ast.Assign(targets=[ast.Name()], value=ast.Name(argument)) if argument.startswith("arg"):
                return  # a size: it is named in `_input`, as the size of a tensor
            case ast.Expr(
                ast.Call(func=ast.Name("assert_size_stride"), args=[ast.Name(name), size, stride, *_])
            ):
                yield from self._input(name, size, stride)
            case ast.Assign(
                targets=[ast.Name(name)], value=ast.Call(func=ast.Name("empty_strided_cpu")) as made
            ):
                yield from self._buffer(name, made)
            case ast.Assign(targets=[ast.Name(name)], value=ast.Name(other)):
                yield f"auto* {name} = {other};"
            case ast.Expr(ast.Call(func=ast.Name(name), args=arguments)) if name in self._kernels:
                yield f"{name}({', '.join(self._arguments(self._kernels[name], arguments))});"
            case ast.Return():
                return
            case _:
                raise unsupported_step(statement)

    def _input(self, name: str, size: ast.expr, stride: ast.expr) -> Iterator[str]:
        """Find the tensor by its shape, and give its symbols the values of our ABI."""
        shape = self._shapes.get(name)
        tensor = next((each for each in self._left if self._problem.shape(each) == shape), None)
        if tensor is None or not (isinstance(size, ast.Tuple) and isinstance(stride, ast.Tuple)):
            raise CannotWrap(f"torch.compile's argument {name} is none of the problem's inputs")
        self._left.remove(tensor)
        declared = self._problem.tensors[tensor]
        for axis, symbol in zip(declared.shape, size.elts, strict=True):
            yield from self._symbol(symbol, axis)
        if _strided(self._problem, tensor):
            yield from self._symbol(stride.elts[-2], _stride(tensor))
        yield f"auto* {name} = {tensor};"

    def _symbol(self, symbol: ast.expr, value: str) -> Iterator[str]:
        if isinstance(symbol, ast.Name) and symbol.id not in self._known:
            self._known.add(symbol.id)
            yield f"const std::int64_t {symbol.id} = {value};"

    def _buffer(self, name: str, made: ast.Call) -> Iterator[str]:
        """Allocated in each call, as torch does; a buffer that is returned is the memory of the output."""
        dtype = buffer_dtype(made)
        output = self._outputs.get(name)
        if output is not None:
            require_contiguous(name, made)
            if self._problem.tensors[output].dtype != dtype:
                raise CannotWrap(f"torch.compile's result is {dtype}, {output} is another type")
            yield f"auto* {name} = {output};"
            return
        yield f"const std::unique_ptr<void, decltype(&std::free)> memory_of_{name}("
        size = f"{_count(made)} * sizeof({C_TYPES[dtype]})"
        yield f"    std::aligned_alloc({_ALIGNMENT}, {size}), &std::free);"
        yield f"if (!memory_of_{name}) return 1;"
        yield f"auto* {name} = static_cast<{C_TYPES[dtype]}*>(memory_of_{name}.get());"

    def _arguments(self, kernel: _Kernel, arguments: list[ast.expr]) -> Iterator[str]:
        for kind, argument in zip(kernel.types, arguments, strict=True):
            if kind.endswith("*"):
                if not isinstance(argument, ast.Name):
                    raise CannotWrap(f"a kernel is called on {ast.unparse(argument)}")
                yield f"reinterpret_cast<{kind}>({argument.id})"
            else:
                yield _formula(argument)


def _count(made: ast.Call) -> str:
    """Number of elements, at least 1, rounded up so that the bytes are a multiple of the alignment."""
    sizes = made.args[0]
    assert isinstance(sizes, ast.Tuple)
    product = " * ".join(_formula(each) for each in sizes.elts) or "1"
    return f"({product} / {_ALIGNMENT} + 1) * {_ALIGNMENT}"


def _formula(expression: ast.expr) -> str:
    """A size: a sum or product of symbols and numbers."""
    match expression:
        case ast.Name(name):
            return name
        case ast.Constant(int(value)):
            return f"INT64_C({value})"
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() as operator, right):
            sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/"}[type(operator)]
            return f"({_formula(left)} {sign} {_formula(right)})"
    raise CannotWrap(f"a size that is {ast.unparse(expression)}")
