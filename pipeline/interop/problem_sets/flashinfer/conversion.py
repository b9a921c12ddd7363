"""Import of a flashinfer-bench data set: its definitions become problems, its solutions candidates.

In: the data set's folder. Out: problems and candidates of a `ConvertedFolder`. Axes that workloads may choose
become module-level sizes where every input is random and nothing relates them, so that other sizes are tried
as well; the workloads themselves are the groups of inputs. What cannot be imported becomes a problem or a
candidate that says so when it is judged, so that it has its line in the table and the rest is judged.
"""

import keyword
import re
from pathlib import Path

import msgspec

from pipeline.interop.problem_sets.converted_folder import ConvertedFolder, not_converted
from pipeline.interop.problem_sets.flashinfer.data_set import (
    FILE,
    DataSet,
    Definition,
    DefinitionWorkload,
    Solution,
    definitions,
    is_data_set,
    order,
    solutions,
    workloads,
)
from pipeline.interop.problem_sets.problem_set_registry import ProblemSet
from pipeline.records.errors import ConfigError

REFERENCE = "definition_reference.py"


def convert(into: ConvertedFolder) -> None:
    """Add all definitions as problems and their solutions as candidates.

    Raises
    ------
    ConfigError
        There are no definitions, or a line of a workload cannot be read.
    """
    folder = into.source
    given = workloads(folder)
    found: dict[str, Definition] = {}
    for path, definition in definitions(folder):
        if isinstance(definition, ConfigError):
            into.add_problem(plain_name(path.stem), {"problem.py": not_converted(str(definition))}, path)
            continue
        files = problem_files(folder, definition, given.get(definition.name, []))
        if into.add_problem(plain_name(definition.name), files, path):
            found[definition.name] = definition
    if not found and not any((folder / "definitions").rglob("*.json")):
        raise ConfigError(f"{folder}: holds no definitions, expected definitions/**/*.json")
    for path, solution in solutions(folder):
        if isinstance(solution, ConfigError):
            problem, name, text = plain_name(path.parent.name), path.stem, not_converted(str(solution))
            into.add_candidate(problem, plain_name(name), text, path)
        elif solution.definition in found:
            text = candidate(found[solution.definition], solution)
            into.add_candidate(plain_name(solution.definition), plain_name(solution.name), text, path)
        else:
            into.complain(path, f"there is no definition {solution.definition}, its solution is left out")


def plain_name(name: str) -> str:
    """A name as a file may be called."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip("._") or "unnamed"


def problem_files(root: Path, definition: Definition, found: list[DefinitionWorkload]) -> dict[str, str]:
    """`problem.py` and what it reads."""
    imported = DataSet(root=str(root.absolute()), definition=definition, workloads=order(definition, found))
    files = {
        FILE: msgspec.json.format(msgspec.json.encode(imported)).decode(),
        REFERENCE: definition.reference,
    }
    if not found:
        reason = f"{definition.name}: the data set has no workload for it"
        return {**files, "problem.py": not_converted(reason)}
    sizes = imported.workloads[-1].axes if _sizes_are_free(definition, imported.workloads) else {}
    return {**files, "problem.py": problem_source(imported, sizes)}


def _sizes_are_free(definition: Definition, found: tuple[DefinitionWorkload, ...]) -> bool:
    """Whether axes may have any value: nothing relates them, and no input has a shape of its own."""
    kinds = {described.get("type") for each in found for described in each.inputs.values()}
    names = [name for each in found for name in each.axes]
    usable = all(name.isidentifier() and not keyword.iskeyword(name) for name in names)
    return usable and not definition.constraints and "safetensors" not in kinds


def problem_source(imported: DataSet, sizes: dict[str, int]) -> str:
    """`problem.py`: everything long is in files next to it."""
    definition, tolerance = imported.definition, _tolerance(imported.workloads)
    names = ", ".join(f"size_{name}" for name in sizes)
    lines = [f"size_{name} = {value}" for name, value in sizes.items()]
    entry = definition.custom_inputs_entrypoint
    custom = "" if entry is None else f"from definition_reference import {entry} as _custom\n"
    given = "" if entry is None else ", _custom"
    chosen = ", ".join(f"{name!r}: size_{name}" for name in sizes)
    text = " ".join((definition.description or definition.name).split()).replace("\\", "/").replace('"', "'")
    return f'''"""{text} (imported from flashinfer-bench)."""

from pathlib import Path

import torch
from definition_reference import run

from pipeline.interop.problem_sets.flashinfer.workload_inputs import arguments, read
{custom}
{chr(10).join(lines)}
_IMPORTED = read(Path(__file__).parent)


class Model(torch.nn.Module):
    def forward(self, {", ".join(definition.inputs)}):
        return run({", ".join(definition.inputs)})


def get_inputs():
    """The largest workload{", on the sizes " + names if sizes else ""}."""
    return arguments(_IMPORTED, _IMPORTED.workloads[-1], {{{chosen}}}{given})


def get_init_inputs():
    return []


def get_input_groups():
    """All workloads."""
    return [arguments(_IMPORTED, workload, {{}}{given}) for workload in _IMPORTED.workloads]
{tolerance}'''


def _tolerance(found: tuple[DefinitionWorkload, ...]) -> str:
    """The widest that workloads declare; nothing where one declares none."""
    declared = [each.tolerance for each in found if each.tolerance]
    if len(declared) < len(found):
        return ""
    rtol, atol = (max(float(each.get(name, 1e-2)) for each in declared) for name in ("max_rtol", "max_atol"))
    ratio = min(float(each.get("required_matched_ratio", 0.99)) for each in declared)
    reason = f"of the workloads; their required_matched_ratio of {ratio:g} is not applied, all elements count"
    return f'\n\ndef get_tolerance():\n    """{reason}"""\n    return {rtol!r}, {atol!r}\n'


def candidate(definition: Definition, solution: Solution) -> str:
    """The file with `ModelNew`."""
    file, _, function = solution.spec.entry_point.rpartition("::")
    sources = {source.path: source.content for source in solution.sources}
    language = solution.spec.language or _language(solution.spec.languages)
    if language in ("python", "triton"):
        if file not in sources:
            return not_converted(
                f"{solution.name}: its entry point {solution.spec.entry_point} is none of its files"
            )
        if len(sources) == 1:
            return f"{sources[file]}\n\n{_model_new(definition, solution, function)}"
        return f"{_unpacked(sources, file, function)}\n\n{_model_new(definition, solution, '_entry')}"
    # Only flashinfer-bench has another binding than torch, and means it where none is given.
    if language in ("cpp", "cuda") and (solution.spec.binding == "torch" or solution.spec.languages):
        return f"{_extension(solution, sources, function)}\n\n{_model_new(definition, solution, '_entry')}"
    binding = solution.spec.binding or "tvm-ffi"
    return not_converted(
        f"{solution.name}: {language} through {binding} cannot be judged (only through torch)"
    )


def _model_new(definition: Definition, solution: Solution, function: str) -> str:
    names = ", ".join(definition.inputs)
    body = f"        return {function}({names})\n"
    if solution.spec.destination_passing_style:
        made = "".join(
            f"        _out{number} = {_empty(definition, name)}\n"
            for number, name in enumerate(definition.outputs)
        )
        outputs = ", ".join(f"_out{number}" for number in range(len(definition.outputs)))
        body = f"{made}        {function}({names}, {outputs})\n        return {outputs}\n"
    return (
        "import torch as _torch\n\n\nclass ModelNew(_torch.nn.Module):\n"
        f"    def forward(self, {names}):\n{body}"
    )


def _empty(definition: Definition, output: str) -> str:
    """An expression that allocates an output on the device of the first input tensor."""
    places = {
        axis: f"{name}.shape[{number}]"
        for name, tensor in reversed(definition.inputs.items())
        for number, axis in enumerate(tensor.shape or ())
    }
    tensor = definition.outputs[output]
    axes = [_size(definition, places, axis) for axis in tensor.shape or ()]
    first = next((name for name, each in definition.inputs.items() if each.shape is not None), None)
    device = f", device={first}.device" if first else ""
    dtype = {"float8_e4m3": "float8_e4m3fn"}.get(tensor.dtype, tensor.dtype)
    return f"_torch.empty([{', '.join(axes)}], dtype=_torch.{dtype}{device})"


def _unpacked(sources: dict[str, str], file: str, function: str) -> str:
    """Several files are written to a folder of the process's own and imported from there."""
    module = ".".join(Path(file).with_suffix("").parts)
    return f"""import importlib
import sys
import tempfile
from pathlib import Path

_SOURCES = {sources!r}
_FOLDER = Path(tempfile.mkdtemp())
for _path, _content in _SOURCES.items():
    (_FOLDER / _path).parent.mkdir(parents=True, exist_ok=True)
    (_FOLDER / _path).write_text(_content)
sys.path.insert(0, str(_FOLDER))
_entry = importlib.import_module({module!r}).{function}"""


def _size(definition: Definition, places: dict[str, str], axis: str) -> str:
    """An expression for the size of an axis, of shapes of the inputs."""
    declared = definition.axes.get(axis)
    if declared is not None and declared.value is not None:
        return str(declared.value)
    if axis in places or declared is None or declared.expression is None:
        return places.get(axis, axis)
    names = re.compile(r"[A-Za-z_]\w*")
    return f"int({names.sub(lambda found: _size(definition, places, found[0]), declared.expression)})"


_LANGUAGES = {
    "pytorch": "python", "triton": "triton",
    "cute_dsl": "python", "cutile": "python", "cudnn_frontend": "python",
    "cuda_cpp": "cuda", "cutlass": "cuda", "cudnn": "cuda", "cublas": "cuda",
}  # fmt: skip
"""SOL-ExecBench's languages by how they are called."""


def _language(languages: tuple[str, ...]) -> str:
    known = [_LANGUAGES.get(each, each) for each in languages]
    return next((each for each in ("cuda", "triton") if each in known), known[0] if known else "no language")


def _extension(solution: Solution, sources: dict[str, str], function: str) -> str:
    """Files as they are, because they include each other; `function` is exported where no file does that."""
    exported = any("PYBIND11_MODULE" in text for text in sources.values())
    export = f'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("{function}", &{function}); }}'
    entry = solution.spec.entry_point.rpartition("::")[0]
    files = dict(sources)
    if not exported and entry in files:
        files[entry] = f"#include <torch/extension.h>\n{files[entry]}\n{export}\n"
    compiled = [path for path in files if path.endswith((".cpp", ".cc", ".cxx", ".cu"))]
    options = solution.spec.compile_options or {}
    flags = {
        "extra_cflags": list(options.get("cflags", ())),
        "extra_cuda_cflags": list(options.get("cuda_cflags", ())),
        "extra_ldflags": list(options.get("ld_flags", ())),
    }
    given = "".join(f", {name}={value!r}" for name, value in flags.items() if value)
    return f"""import tempfile
from pathlib import Path

from torch.utils.cpp_extension import load

_SOURCES = {files!r}
_FOLDER = Path(tempfile.mkdtemp())
for _path, _content in _SOURCES.items():
    (_FOLDER / _path).parent.mkdir(parents=True, exist_ok=True)
    (_FOLDER / _path).write_text(_content)
_entry = load("solution", [str(_FOLDER / _path) for _path in {compiled!r}]{given}).{function}"""


FLASHINFER = ProblemSet(
    name="flashinfer-bench",
    description="definitions/, workloads/ and solutions/",
    recognizes=is_data_set,
    convert=convert,
)
