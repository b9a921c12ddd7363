"""What torch.compile generated, and how the Python wrapper in it is read.

A generated module consists of kernels and of a Python function `call`, which allocates buffers and calls the
kernels in turn. The sources of `cpp_source` and `triton_source` replace that function by an entry point.
"""

import ast

from pipeline.records.planning.problem import Problem
from pipeline.records.record import Record

C_TYPES = {
    "float32": "float", "float64": "double", "bfloat16": "at::BFloat16", "float16": "at::Half",
    "int64": "std::int64_t", "int32": "std::int32_t", "int8": "std::int8_t", "uint8": "std::uint8_t",
    "bool": "bool",
}  # fmt: skip
"""Dtype of a buffer -> its C++ type."""
_REASON_AT_MOST = 300  # characters


class TritonKernel(Record, frozen=True, kw_only=True):
    """One generated Triton kernel, and how Inductor launches it."""

    name: str
    text: str
    """The source of its function."""
    parameters: tuple[str, ...]
    """The parameters that a call passes; block sizes are not among them."""
    options: dict[str, int]
    """Block sizes, `num_warps` and `num_stages` of the first configuration that Inductor would try."""
    configurations: int
    """How many configurations it would try on a device."""
    before: tuple[str, ...]
    """Statements that the grid needs."""
    grid: tuple[str, ...]
    """Formulas over the parameters."""


class GeneratedCode(Record, frozen=True, kw_only=True):
    """What torch.compile generated for a reference, or why it generated nothing."""

    modules: tuple[str, ...] = ()
    """One Python module for each graph."""
    kernels: tuple[TritonKernel, ...] = ()
    """For a GPU."""
    capability: str = ""
    """For a CPU: macro of the vector instructions, such as `CPU_CAPABILITY_AVX512`."""
    version: str = ""
    """Version of torch."""
    problem: str | None = None
    """Why there is no code."""


def failed(what: str, error: Exception, version: str = "") -> GeneratedCode:
    """The answer if torch raises an error: one line of it."""
    line = " ".join(str(error).split())[:_REASON_AT_MOST]
    return GeneratedCode(problem=f"{what}: {type(error).__name__}: {line}", version=version)


class CannotWrap(Exception):
    """The generated code cannot become a source of its own; the text says why."""


def wrapper_function(tree: ast.Module, name: str) -> ast.FunctionDef:
    """The function of a generated module, at any depth; raises CannotWrap if there is none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    raise CannotWrap(f"torch.compile generated no function `{name}`: this version of torch is not supported")


def refuse_libraries(statement: ast.stmt) -> None:
    """Raise CannotWrap if a statement calls an operator of a library."""
    text = ast.unparse(statement).splitlines()[0]
    if any(library in text for library in ("extern_kernels.", "torch.ops.", "aten.")):
        raise CannotWrap(f"torch.compile turns a part of it into a call of a library: {text}")


def unsupported_step(statement: ast.stmt) -> CannotWrap:
    """The error for a statement that neither allocates a buffer nor calls a kernel."""
    text = ast.unparse(statement).splitlines()[0]
    return CannotWrap(f"torch.compile generated a step that is no kernel: {text}")


def returned_buffers(statements: list[ast.stmt], problem: Problem) -> dict[str, str]:
    """Buffer -> the output that it is returned as; a buffer may have several names in turn."""
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


def buffer_dtype(made: ast.Call) -> str:
    """Dtype of a buffer that the wrapper allocates; raises CannotWrap if no tensor of ours has it."""
    dtype = made.args[2]
    if isinstance(dtype, ast.Attribute) and dtype.attr in C_TYPES:
        return dtype.attr
    raise CannotWrap(f"a buffer of the type {ast.unparse(dtype)}")


def require_contiguous(name: str, made: ast.Call) -> None:
    """Raise CannotWrap if a buffer that the wrapper allocates is not contiguous."""
    sizes, strides = made.args[0], made.args[1]
    assert isinstance(sizes, ast.Tuple)
    assert isinstance(strides, ast.Tuple)
    product = "1"
    for size, stride in zip(reversed(sizes.elts), reversed(strides.elts), strict=True):
        if ast.unparse(stride) != product and ast.unparse(size) != "1":
            raise CannotWrap(f"torch.compile lays its result {name} out as {ast.unparse(strides)}")
        product = ast.unparse(size) if product == "1" else f"{ast.unparse(size)} * {product}"
