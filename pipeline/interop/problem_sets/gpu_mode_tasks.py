"""GPU MODE's reference-kernels: `task.yml`, `reference.py`, `task.py`, `submission.py`.

In: a checkout, or any folder of tasks in it. Out: a problem for each `task.yml` by its path, whose groups of
inputs are the tests that it lists; candidates are `submission.py`, `submissions/*.py`, `solutions/**/*.py`.

The problem runs on the CPU, as all problems do: `"cuda"` is replaced in the copies of its files. Tensors that
the reference writes into are outputs: reference and candidate get fresh memory for them in each call.
"""

import ast
import re
from pathlib import Path
from typing import Any

import yaml

from pipeline.interop.problem_sets.converted_folder import ConvertedFolder, files_named, not_converted
from pipeline.interop.problem_sets.problem_set_registry import ProblemSet

TASK = "task.yml"
_SUBMISSION = "@SUBMISSION@"
_DEVICE = re.compile(r"""(["'])cuda(:0)?\1""")
_OUTPUTS = '''
def _fresh(data, written):
    """The arguments with fresh memory in place of what is written."""
    return tuple(torch.empty_like(each) if i in written else each for i, each in enumerate(data))
'''
_PROBLEM = '''"""A task of GPU MODE, converted."""

import torch
from reference import generate_input, ref_kernel

{sizes}

_TESTS = {tests!r}
{outputs}

class Model(torch.nn.Module):
    def __init__(self, written, several):
        super().__init__()
        self.written, self.several = written, several

    def forward(self, *data):
        data = _fresh(data, self.written)
        return ref_kernel(data if self.several else data[0])


def _drawn(test):
    seed = int(torch.randint(1 << 30, (1,)))
    data = generate_input(**test, **({{"seed": seed}} if {seeded} else {{}}))
    return list(data) if isinstance(data, (tuple, list)) else [data]


def get_inputs():
    return _drawn(_TESTS[-1] | {chosen})


def get_input_groups():
    """All tests that are small enough, or the first."""
    groups = [_drawn(test) for test in _TESTS]
    small = [group for group in groups if _elements(group) <= 1 << 22]
    return small or groups[:1]


def _elements(group):
    return max([each.numel() for each in group if isinstance(each, torch.Tensor)], default=0)


def get_init_inputs():
    """Which arguments the reference writes into, and whether they are several."""
    data = _drawn(_TESTS[0])
    before = [each._version if isinstance(each, torch.Tensor) else 0 for each in data]
    several = isinstance(generate_input(**_TESTS[0], **({{"seed": 1}} if {seeded} else {{}})), (tuple, list))
    ref_kernel(tuple(data) if several else data[0])
    after = [each._version if isinstance(each, torch.Tensor) else 0 for each in data]
    written = [i for i, version in enumerate(after) if version > before[i]]
    return [written, several]
{tolerance}'''
_TOLERANCE = '''

def get_tolerance():
    """of the task's check_implementation"""
    return {rtol}, {atol}
'''
_CANDIDATE = """{future}import sys as _sys
import types as _types

import torch

for _name, _text in {modules!r}.items():
    _module = _sys.modules[_name] = _types.ModuleType(_name)
    exec(compile(_text, f"{{_name}}.py", "exec"), _module.__dict__)

{text}

{outputs}

class ModelNew(torch.nn.Module):
    def __init__(self, written, several):
        super().__init__()
        self.written, self.several = written, several

    def forward(self, *data):
        data = _fresh(data, self.written)
        return custom_kernel(data if self.several else data[0])
"""


def convert(into: ConvertedFolder) -> None:
    """Add all tasks."""
    # A task uses files of the folders around it.
    around = [into.source.resolve(), *list(into.source.resolve().parents)[:2]]
    into.allow(next((each for each in reversed(around) if each.name == "problems"), around[0]))
    for path in files_named(into.source, TASK):
        folder = path.parent
        name = _name(folder, into.source)
        try:
            tests, sources = _task(into, path)
        except ValueError as error:
            into.add_problem(name, {"problem.py": not_converted(str(error))}, path)
            into.complain(path, str(error))
            continue
        files = {**sources, "problem.py": _problem(tests, sources["reference.py"])}
        if into.add_problem(name, files, path):
            helpers = {
                file.removesuffix(".py"): text for file, text in sources.items() if file != "reference.py"
            }
            _add_candidates(into, folder, name, helpers)


def _name(folder: Path, root: Path) -> str:
    parts = folder.relative_to(root).parts
    return "/".join(parts[1:] if parts[:1] == ("problems",) else parts) or folder.name


def _task(into: ConvertedFolder, path: Path) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The tests, and the files that the task consists of, for the CPU; ValueError says what is wrong."""
    try:
        task = yaml.safe_load(into.text(path) or "")
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {' '.join(str(error).split())}") from None
    tests, listed = (task.get(key) if isinstance(task, dict) else None for key in ("tests", "files"))
    if not isinstance(tests, list) or not tests or not all(isinstance(test, dict) for test in tests):
        raise ValueError("no tests, expected a list of arguments of generate_input")
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise ValueError("no files, expected a list of {name, source}")
    sources = {}
    for each in listed:
        file, source = str(each.get("name")), str(each.get("source"))
        if source == _SUBMISSION or file == "eval.py" or not re.fullmatch(r"\w+\.py", file):
            continue
        found = into.text((path.parent / source).resolve())
        if found is None:
            raise ValueError(f"its file {source} cannot be read")
        sources[file] = _DEVICE.sub("'cpu'", found).replace(".cuda()", "")
    if "reference.py" not in sources:
        raise ValueError("its files have no reference.py")
    return tests, sources


def _problem(tests: list[dict[str, Any]], reference: str) -> str:
    """The largest test last; its whole numbers are sizes."""
    plain = [{key: value for key, value in test.items() if key != "seed"} for test in tests]
    ordered = sorted(plain, key=lambda test: sum(v for v in test.values() if type(v) is int))
    # With other arguments than numbers, sizes may be what these go with.
    free = all(type(value) is int for test in ordered for value in test.values())
    sizes = {key: value for key, value in ordered[-1].items() if free and value > 0}
    return _PROBLEM.format(
        sizes="\n".join(f"size_{name} = {value}" for name, value in sizes.items()),
        tests=ordered,
        outputs=_OUTPUTS,
        seeded=any("seed" in test for test in tests),
        chosen="{" + ", ".join(f"{name!r}: size_{name}" for name in sizes) + "}",
        tolerance=_tolerance(reference),
    )


def _tolerance(reference: str) -> str:
    """What `make_match_reference` is given; nothing where the task has a check of its own, or the default."""
    try:
        tree = ast.parse(reference)
    except SyntaxError:  # reported when the problem is imported
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "make_match_reference":
            given = {each.arg: ast.unparse(each.value) for each in node.keywords}
            if {"rtol", "atol"} <= given.keys():
                return _TOLERANCE.format(rtol=given["rtol"], atol=given["atol"])
    return ""


def _add_candidates(into: ConvertedFolder, folder: Path, name: str, helpers: dict[str, str]) -> None:
    paths = [folder / "submission.py", *sorted((folder / "submissions").glob("*.py"))]
    paths += sorted((folder / "solutions").rglob("*.py"))
    for path in paths:
        text = into.text(path) if path.exists() or path.is_symlink() else None
        if text is None:
            continue
        label = ".".join(path.relative_to(folder).with_suffix("").parts).removeprefix("solutions.")
        future = [line for line in text.splitlines() if line.startswith("from __future__ ")]
        into.add_candidate(
            name,
            label.removeprefix("submissions."),
            _CANDIDATE.format(
                future="".join(f"{line}\n" for line in future),
                modules=helpers,
                text="\n".join(line for line in text.splitlines() if line not in future),
                outputs=_OUTPUTS,
            ),
            path,
        )


def _recognizes(folder: Path) -> bool:
    return any((path.parent / "reference.py").exists() for path in files_named(folder, TASK))


GPU_MODE = ProblemSet(
    name="GPU MODE",
    description="task.yml, reference.py and submission.py",
    recognizes=_recognizes,
    convert=convert,
)
