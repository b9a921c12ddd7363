"""From what Inductor generated to one C++ source. In: its Python module, the problem. Out: a text.

Inductor writes kernels in C++, and a Python function that allocates buffers and calls them in turn. That
function becomes the entry. What it cannot be without (an operator of a library, a view with a layout of its
own) is told instead.
"""

import ast
from collections.abc import Iterator

from pipeline.records.planning.problem import Problem
from pipeline.records.record import Record

HEADER = "#include <torch/csrc/inductor/cpp_prefix.h>"
_C_TYPES = {
    "float32": "float", "float64": "double", "bfloat16": "at::BFloat16", "float16": "at::Half",
    "int64": "std::int64_t", "int32": "std::int32_t", "int8": "std::int8_t", "uint8": "std::uint8_t",
    "bool": "bool",
}  # fmt: skip
_ALIGNMENT = 64  # bytes, as torch's own buffers


class CannotWrap(Exception):
    """The generated code is no kernel of its own; the text says why."""


class _Kernel(Record, frozen=True, kw_only=True):
    types: tuple[str, ...]
    code: str


class Macros(Record, frozen=True, kw_only=True):
    """What the text says of its making."""

    capability: str
    version: str


def wrap(module: str, problem: Problem, entry: str, macros: Macros) -> str:
    """One self-contained source.

    Raises
    ------
    CannotWrap
        It calls a library, or its result is not laid out as the problem wants it.
    """
    tree = ast.parse(module)
    kernels = dict(_kernels(tree))
    statements = function_named(tree, "call").body
    for statement in statements:
        refuse_libraries(statement)
    body = _Body(problem, kernels, results(statements, problem), _shapes(tree))
    lines = [line for statement in statements for line in body.line(statement)]
    parts = [
        f"// What torch.compile (torch {macros.version}) generates for the reference, with symbolic sizes.",
        "// Its kernels are as they were; the entry does what Inductor's Python wrapper does.",
        "#define TORCH_INDUCTOR_CPP_WRAPPER",
        "#define STANDALONE_TORCH_HEADER",
        "#define C10_USING_CUSTOM_GENERATED_MACROS",
        *([f"#define {macros.capability}"] if macros.capability else []),
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


def function_named(tree: ast.Module, name: str) -> ast.FunctionDef:
    """Of a generated module, at any depth; raises CannotWrap where there is none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    raise CannotWrap(
        f"torch.compile generated no function `{name}`: a version of torch that is not known here"
    )


def _shapes(tree: ast.Module) -> dict[str, tuple[int, ...]]:
    """Argument -> shape that it had: arguments come in the order in which the graph uses them."""
    found: dict[str, tuple[int, ...]] = {}
    for node in function_named(tree, "get_args").body:
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Call(args=[ast.Tuple() as shape, *_])):
                found[name] = tuple(ast.literal_eval(shape))
    return found


def _renamed(name: str, code: str) -> str:
    """Every kernel is called `kernel` in a file of its own; here each has a name."""
    text = code.replace(HEADER, "").strip()
    for head in ('extern "C"  void  kernel(', 'extern "C" void kernel('):
        if head in text:
            return f"static {text.replace(head, f'void {name}(', 1).strip()}\n"
    raise CannotWrap(f"{name}: its C++ does not begin as this version of torch writes it")


def _parameters(problem: Problem) -> Iterator[str]:
    for role in ("input", "output"):
        for name in problem.names(role):
            const = "const " if role == "input" else ""
            yield f"{const}{_C_TYPES[problem.tensors[name].dtype]}* {name}"
    yield from (f"std::int64_t {name}" for name in problem.dimensions)
    names = (*problem.names("input"), *problem.names("output"))
    yield from (f"std::int64_t {_stride(name)}" for name in names if _strided(problem, name))
    yield from (f"double {name}" for name in problem.scalars)


def _strided(problem: Problem, name: str) -> bool:
    return problem.tensors[name].layout == "row_strided"


def _stride(name: str) -> str:
    return f"stride_of_{name}"


class _Body:
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
                return  # a size: what it is called in our ABI is seen where it is the size of a tensor
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
                text = ast.unparse(statement).splitlines()[0]
                raise CannotWrap(f"torch.compile generated a step that is no kernel: {text}")

    def _input(self, name: str, size: ast.expr, stride: ast.expr) -> Iterator[str]:
        """Which tensor it is, and what its symbols are called in our ABI."""
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

    def _symbol(self, symbol: ast.expr, ours: str) -> Iterator[str]:
        if isinstance(symbol, ast.Name) and symbol.id not in self._known:
            self._known.add(symbol.id)
            yield f"const std::int64_t {symbol.id} = {ours};"

    def _buffer(self, name: str, made: ast.Call) -> Iterator[str]:
        """Made anew in each call, as torch's are; one that is returned is the output's own memory."""
        dtype = dtype_of(made)
        output = self._outputs.get(name)
        if output is not None:
            require_contiguous(name, made)
            if self._problem.tensors[output].dtype != dtype:
                raise CannotWrap(f"torch.compile's result is {dtype}, {output} is another type")
            yield f"auto* {name} = {output};"
            return
        yield f"const std::unique_ptr<void, decltype(&std::free)> memory_of_{name}("
        size = f"{_count(made)} * sizeof({_C_TYPES[dtype]})"
        yield f"    std::aligned_alloc({_ALIGNMENT}, {size}), &std::free);"
        yield f"if (!memory_of_{name}) return 1;"
        yield f"auto* {name} = static_cast<{_C_TYPES[dtype]}*>(memory_of_{name}.get());"

    def _arguments(self, kernel: _Kernel, arguments: list[ast.expr]) -> Iterator[str]:
        for kind, argument in zip(kernel.types, arguments, strict=True):
            if kind.endswith("*"):
                if not isinstance(argument, ast.Name):
                    raise CannotWrap(f"a kernel is called on {ast.unparse(argument)}")
                yield f"reinterpret_cast<{kind}>({argument.id})"
            else:
                yield _formula(argument)


def results(statements: list[ast.stmt], problem: Problem) -> dict[str, str]:
    """Buffer -> the output that it is returned as; a buffer may be used again under another name."""
    last = statements[-1]
    if not (isinstance(last, ast.Return) and isinstance(last.value, ast.Tuple)):
        raise CannotWrap("torch.compile generated a function that does not end with its results")
    renamed = {
        target.id: statement.value.id
        for statement in statements
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    outputs = problem.names("output")
    if len(outputs) != len(last.value.elts):
        raise CannotWrap(f"torch.compile returns {len(last.value.elts)} values, expected {len(outputs)}")
    found: dict[str, str] = {}
    for value, output in zip(last.value.elts, outputs, strict=True):
        if not isinstance(value, ast.Name):
            raise CannotWrap(f"torch.compile returns {ast.unparse(value)}, which is no buffer of its own")
        name = value.id
        while name in renamed:
            name = renamed[name]
        found[name] = output
    return found


def _count(made: ast.Call) -> str:
    """Elements, rounded up so that the bytes are a multiple of the alignment, and never none."""
    sizes = made.args[0]
    assert isinstance(sizes, ast.Tuple)
    product = " * ".join(_formula(each) for each in sizes.elts) or "1"
    return f"({product} / {_ALIGNMENT} + 1) * {_ALIGNMENT}"


def dtype_of(made: ast.Call) -> str:
    """Of a buffer that the wrapper makes; raises CannotWrap where no tensor of ours has that type."""
    dtype = made.args[2]
    if isinstance(dtype, ast.Attribute) and dtype.attr in _C_TYPES:
        return dtype.attr
    raise CannotWrap(f"a buffer of the type {ast.unparse(dtype)}")


def require_contiguous(name: str, made: ast.Call) -> None:
    """Raise CannotWrap where a buffer that the wrapper makes has rows apart, or another order."""
    sizes, strides = made.args[0], made.args[1]
    assert isinstance(sizes, ast.Tuple)
    assert isinstance(strides, ast.Tuple)
    product = "1"
    for size, stride in zip(reversed(sizes.elts), reversed(strides.elts), strict=True):
        if ast.unparse(stride) != product and ast.unparse(size) != "1":
            raise CannotWrap(f"torch.compile lays its result {name} out as {ast.unparse(strides)}")
        product = ast.unparse(size) if product == "1" else f"{ast.unparse(size)} * {product}"


def _formula(expression: ast.expr) -> str:
    """Sizes are sums and products of symbols."""
    match expression:
        case ast.Name(name):
            return name
        case ast.Constant(int(value)):
            return f"INT64_C({value})"
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() as operator, right):
            sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/"}[type(operator)]
            return f"({_formula(left)} {sign} {_formula(right)})"
    raise CannotWrap(f"a size that is {ast.unparse(expression)}")


def refuse_libraries(statement: ast.stmt) -> None:
    """Raise CannotWrap where a statement calls an operator that is not generated."""
    text = ast.unparse(statement).splitlines()[0]
    if any(library in text for library in ("extern_kernels.", "torch.ops.", "aten.")):
        raise CannotWrap(f"torch.compile turns a part of it into a call of a library: {text}")
