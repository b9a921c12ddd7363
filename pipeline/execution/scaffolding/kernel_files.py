"""The files of a new kernel: a PyTorch function in; yaml, reference and sources out, if all are new."""

import builtins
import importlib
import inspect
import keyword
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pipeline.execution.scaffolding.function_graph import FunctionGraph, ValueShape, trace
from pipeline.execution.scaffolding.kernel_sources import cpp_source, missing_in_triton, triton_source
from pipeline.records.errors import ConfigError
from pipeline.records.record import Record
from pipeline.store.atomic import write_atomic

Kind = Literal["elementwise", "reduction"]
LANGUAGES = ("cpp", "triton")
EXAMPLES: dict[Kind, str] = {
    "elementwise": "def reference(x):\n    return x * torch.sigmoid(x)\n",
    "reduction": (
        "def reference(x):\n    return x * torch.rsqrt((x * x).mean(dim=-1, keepdim=True) + 1e-6)\n"
    ),
}
"""What a kernel computes until its author says something else."""
MODULES = {"torch": "import torch", "F": "import torch.nn.functional as F", "math": "import math"}
"""Names of modules that a function may use."""
TAKEN = frozenset({"y", "rows", "cols", "row", "col", "mask", "vec", "tl", "triton", "num_warps"})


class KernelRequest(Record, frozen=True, kw_only=True):
    """What is to be written."""

    name: str
    kind: Kind = "elementwise"
    """Which example; only without `function`."""
    function: str | None = None
    """`module:function` in PyTorch."""
    vectors: tuple[str, ...] = ()
    """Inputs of shape [cols]; the others are [rows, cols]."""
    languages: tuple[str, ...] = LANGUAGES
    description: str = ""


def write_kernel(request: KernelRequest, root: Path) -> list[Path]:
    """Write the files of a kernel; their paths from the repository's root.

    Raises
    ------
    ConfigError
        The name is none, a file exists, or the function is not one that can be translated.
    """
    _check_name(request.name, root)
    text = EXAMPLES[request.kind] if request.function is None else _source_of(request.function)
    function = _compiled(text)
    names = tuple(inspect.signature(function).parameters)
    _check_inputs(names, request)
    graph = trace(function, names, request.vectors)
    contents = _contents(request, text, graph)
    for path in contents:
        if (root / path).exists():
            raise ConfigError(f"{path} exists: nothing was written")
    for path, content in contents.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        write_atomic(root / path, content.encode())
    return [Path(path) for path in contents]


def _check_name(name: str, root: Path) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name) or name == "reference":
        raise ConfigError(f"{name}: expected a name of lowercase letters, digits and _ for the kernel")
    for path in (Path("conf/kernel") / f"{name}.yaml", Path("kernels") / name):
        if (root / path).exists():
            raise ConfigError(f"{path} exists: choose another name, or remove it; nothing was written")


def _source_of(path: str) -> str:
    """The function's text under the name `reference`."""
    module, _, name = path.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
        text = textwrap.dedent(inspect.getsource(function))
    except (ImportError, AttributeError, TypeError, OSError, ValueError) as error:
        raise ConfigError(f"--from {path}: expected module:function with a source: {error}") from error
    used = inspect.getclosurevars(function)
    free = {**used.globals, **used.nonlocals}
    foreign = [each for each in free if each not in MODULES or not inspect.ismodule(free[each])]
    if foreign:
        raise ConfigError(
            f"--from {path}: it uses '{foreign[0]}' of its module: a reference stands alone, with "
            f"{', '.join(MODULES)}"
        )
    text = text[text.index("def ") :]  # without decorators
    return re.sub(r"^def \w+", "def reference", text)


def _compiled(text: str) -> Callable[..., Any]:
    scope: dict[str, Any] = {}
    exec("\n".join((*MODULES.values(), text)), scope)  # the user's own function, or an example of ours
    function: Callable[..., Any] = scope["reference"]
    return function


def _check_inputs(names: tuple[str, ...], request: KernelRequest) -> None:
    for name in names:
        if name in TAKEN or name in dir(builtins) or name == request.name:
            raise ConfigError(f"input '{name}': the sources use this name; rename the parameter")
    for name in request.vectors:
        if name not in names:
            raise ConfigError(f"--vector {name}: no such input (known: {', '.join(names)})")
    if set(names) <= set(request.vectors):
        raise ConfigError("expected at least one input of shape [rows, cols]")


def _contents(request: KernelRequest, text: str, graph: FunctionGraph) -> dict[str, str]:
    name, folder = request.name, f"kernels/{request.name}"
    languages = [each for each in LANGUAGES if each in request.languages]
    if missing := missing_in_triton(graph):
        if languages == ["triton"]:
            raise ConfigError(f"Triton has no {missing[0]} that runs in its interpreter: add --language cpp")
        languages = [each for each in languages if each != "triton"]
    contents = {
        f"conf/kernel/{name}.yaml": _yaml(request, graph, languages),
        f"{folder}/reference.py": _reference(request, text, graph),
    }
    if "cpp" in languages:
        contents[f"{folder}/{name}.cpp"] = cpp_source(name, graph)
    if "triton" in languages:
        contents[f"{folder}/{name}_triton.py"] = triton_source(name, graph)
    return contents


def _description(request: KernelRequest) -> str:
    return request.description or f"{request.name}, as its reference computes it."


def _reference(request: KernelRequest, text: str, graph: FunctionGraph) -> str:
    shapes = ", ".join(f"{name} {_axes(shape)}" for name, shape in graph.inputs.items())
    imports = [line for name, line in MODULES.items() if re.search(rf"\b{name}\.", text)]
    return "\n".join(
        [
            f'"""{_description(request)}',
            "",
            f'{shapes} -> y [rows, cols]."""',
            "",
            *([*imports, "", ""] if imports else [""]),
            text,
        ]
    )


def _axes(shape: ValueShape) -> str:
    return "[cols]" if shape is ValueShape.VECTOR else "[rows, cols]"


def _yaml(request: KernelRequest, graph: FunctionGraph, languages: list[str]) -> str:
    name = request.name
    tensors = [f"  {each}: {{role: input, shape: {_axes(shape)}}}" for each, shape in graph.inputs.items()]
    matrices = sum(shape is ValueShape.MATRIX for shape in graph.inputs.values())
    vectors = len(graph.inputs) - matrices
    moved = (
        f"({matrices + 1} * rows * cols + {vectors} * cols)" if vectors else f"{matrices + 1} * rows * cols"
    )
    operations = sum(step.reduces or step.shape is not ValueShape.ROW for step in graph.steps)
    category = "reduction" if any(step.reduces for step in graph.steps) else "elementwise"
    lines = [
        f"# kernelmill run kernel={name}",
        f"name: {name}",
        f"description: {_quoted(_description(request))}",
        f"category: {category}",
        "dimensions:",
        "  rows: tokens",
        "  cols: hidden",
        "tensors:",
        *tensors,
        "  y: {role: output, shape: [rows, cols]}",
        f"reference: kernels.{name}.reference:reference",
        "cost:",
        "  # Operations of the reference, one for each element; each tensor is read or written once.",
        f"  flops: {operations} * rows * cols",
        f"  bytes: {moved} * itemsize",
        "tolerance:",
        "  magnitude: derived",
        "  reason: Sampled from the rounding errors of the reference's own operations.",
        "implementations:",
    ]
    for language in languages:
        lines += _implementation(name, language)
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    return '"' + " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _implementation(name: str, language: str) -> list[str]:
    source, entry = (f"{name}.cpp", name) if language == "cpp" else (f"{name}_triton.py", "launch")
    tunables = {
        "cpp": 'PARALLEL: {values: [false, true], default: true, technique: parallelization, "off": false}',
        "triton": "num_warps: {values: [4, 8], default: 4}",
    }
    return [
        f"  {language}:",
        f"    backend: {language}",
        f"    source: kernels/{name}/{source}",
        f"    entry: {entry}",
        "    origin: this project",
        "    licence: Apache-2.0",
        "    tunables:",
        f"      {tunables[language]}",
    ]
