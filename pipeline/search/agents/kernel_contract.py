"""How a kernel is called, for a prompt: an implementation and its problem in, a signature and rules out."""

import re

from pipeline.records.configuration.kernel import Implementation, TunableValue
from pipeline.records.planning.problem import Problem
from pipeline.records.record import Record

LANGUAGE = {"cpp": "C++17", "cuda": "CUDA C++", "triton": "Triton (Python)"}
"""Backends whose sources can be written, and what their language is called."""
FENCE = {"cpp": "cpp", "cuda": "cuda", "triton": "python"}

_TYPES = {
    "float32": "float", "float64": "double", "float16": "std::uint16_t", "bfloat16": "std::uint16_t",
    "int64": "std::int64_t", "int32": "std::int32_t", "int16": "std::int16_t", "int8": "std::int8_t",
    "uint8": "std::uint8_t", "bool": "bool",
}  # fmt: skip
"""Of tensors in C++ for the CPU: 16-bit floating-point numbers come as their bits."""
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


class Contract(Record, frozen=True, kw_only=True):
    """What a source has to keep to."""

    language: str
    fence: str
    signature: str
    lines: tuple[str, ...]
    includes: tuple[str, ...]
    """Files in quotes that it may include."""


def contract_of(
    implementation: Implementation, problem: Problem, tunables: dict[str, TunableValue], declared: str
) -> Contract:
    """Of an implementation at a point; `declared` is the text of its own source."""
    name = implementation.backend
    rules = [_shapes(problem)]
    if problem.attributes:
        rules.append(f"attributes: {_pairs(problem.attributes)}")
    if tunables:
        how = "macros of the command line" if name != "triton" else "keyword arguments of the entry point"
        rules.append(f"{how}, to be used or ignored: {_pairs(tunables)}")
    includes = tuple(sorted(set(_INCLUDE.findall(declared)))) if name != "triton" else ()
    if name == "cpp":
        rules.append("one shared object, no main; OpenMP is at hand; -O3 -march=native, no -ffast-math")
        rules.append("return 0; another number refuses the call, which counts as a failure")
    if includes:
        rules.append(f"may be included beside system headers: {', '.join(includes)}")
    if implementation.launch is not None:
        grid, block = implementation.launch.grid, implementation.launch.block
        rules.append(f"launched with grid {list(grid)} and block {list(block)}, shared memory in bytes:"
                     f" {implementation.launch.shared_memory}")  # fmt: skip
    entry = implementation.entry
    signature = _signature(entry, problem) if name == "cpp" else f"{entry}: exactly as in the source below"
    return Contract(
        language=LANGUAGE[name], fence=FENCE[name], signature=signature, lines=tuple(rules), includes=includes
    )


def _signature(entry: str, problem: Problem) -> str:
    """The C ABI of `pipeline.backends.cpp`."""
    parameters = [
        *(f"const {_type(problem, name)}* {name}" for name in problem.names("input")),
        *(f"{_type(problem, name)}* {name}" for name in problem.names("output")),
        *(f"std::int64_t {name}" for name in problem.dimensions),
        *(
            f"std::int64_t stride_{name}"
            for role in ("input", "output")
            for name in problem.names(role)
            if problem.tensors[name].layout == "row_strided"
        ),
        *(f"double {name}" for name in problem.scalars),
    ]
    return f'extern "C" int {entry}({", ".join(parameters)});'


def _type(problem: Problem, name: str) -> str:
    return _TYPES.get(problem.tensors[name].dtype, "void")


def _shapes(problem: Problem) -> str:
    shown = [
        f"{name} {tensor.dtype} [{', '.join(tensor.shape)}]"
        + (" (rows may be padded: stride in elements)" if tensor.layout == "row_strided" else "")
        for name, tensor in problem.tensors.items()
    ]
    sizes = _pairs(problem.dimensions)
    return f"tensors: {'; '.join(shown)}; measured at {sizes}, checked at many other sizes"


def _pairs(values: dict[str, int] | dict[str, TunableValue]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())
