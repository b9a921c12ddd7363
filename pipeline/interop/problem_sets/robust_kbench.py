"""robust-kbench: `func_forward.py` with `config_forward.json`, candidates in CUDA C++.

In: a checkout, or any folder of tasks in it. Out: a problem for each task and initialisation that its
configuration lists; candidates are the task's `forward*.cu`, and `highlighted/<task>/forward/*.cu`. C++ that
needs no CUDA (`*.cpp`) and Python with a function `forward` (`*.py`) are taken, too. Backward tasks are not.
"""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.interop.problem_sets.converted_folder import ConvertedFolder, files_named, not_converted
from pipeline.interop.problem_sets.problem_set_registry import ProblemSet

TASK, CONFIG = "func_forward.py", "config_forward.json"
_LANGUAGES = {".cu": "cuda", ".cpp": "cpp", ".py": "python"}
_CONFIGS = ("input_configs", "init_configs", "shared_configs")
_PROBLEM = """{task}

{sizes}
_task_inputs = get_inputs


def get_inputs():
    return _task_inputs({inputs})


def get_init_inputs():
    return {{{initial}}}
"""
_CANDIDATE = """{task}

{kernel}


class ModelNew(Model):
    def forward(self, *inputs):
        return super().forward(*inputs, fn=_forward)
"""


def convert(into: ConvertedFolder) -> None:
    """Add all tasks."""
    tasks = [path.parent for path in files_named(into.source, TASK) if (path.parent / CONFIG).exists()]
    for folder in tasks:
        name = _name(folder, into.source)
        text, config = into.text(folder / TASK), into.text(folder / CONFIG)
        if text is None or config is None:
            continue
        try:
            settings = _settings(json.loads(config))
            defaults = _defaults(text)
        except (ValueError, SyntaxError) as error:
            reason = f"{folder / CONFIG}: {error}"
            into.add_problem(name, {"problem.py": not_converted(reason)}, folder / CONFIG)
            into.complain(folder / CONFIG, str(error))
            continue
        for label, initial, inputs in settings:
            problem = f"{name}[{label}]" if len(settings) > 1 else name
            source = _problem(text, initial, inputs, defaults)
            if into.add_problem(problem, {"problem.py": source}, folder):
                for path in _candidates(into.source, folder):
                    _add_candidate(into, problem, path, text)


def _name(folder: Path, root: Path) -> str:
    parts = folder.relative_to(root).parts
    return "/".join(parts[1:] if parts[:1] == ("tasks",) else parts) or folder.name


Arguments = dict[str, Any]


def _settings(config: Any) -> list[tuple[str, Arguments, Arguments]]:
    """Label, arguments of `Model` and of `get_inputs`, for each choice of the former.

    Of several choices of the latter the first is taken: judge tries other sizes of its own.
    """
    if not isinstance(config, dict):
        raise ValueError("expected a JSON object")
    found: dict[str, tuple[str, Arguments, Arguments]] = {}
    for kind in ("single", "multi"):
        lists = [config.get(f"{kind}_{each}") or [{}] for each in _CONFIGS]
        if not all(isinstance(each, list) and all(isinstance(one, dict) for one in each) for each in lists):
            raise ValueError(f"{kind}_*_configs: expected lists of objects")
        if found and all(each == [{}] for each in lists):
            continue  # nothing but defaults: there is one setting
        inputs, initials, shared = lists
        for together in shared:
            for initial in initials:
                chosen = {**initial, **together}
                label = ",".join(f"{key}={value}" for key, value in sorted(chosen.items()))
                found.setdefault(label, (label, chosen, {**inputs[0], **together}))
    return list(found.values())


def _defaults(task: str) -> dict[str, Arguments]:
    """Default arguments of `get_inputs` and of `Model`."""
    found: dict[str, Arguments] = {"get_inputs": {}, "Model": {}}
    for node in ast.parse(task).body:
        if isinstance(node, ast.FunctionDef) and node.name == "get_inputs":
            found["get_inputs"] = _arguments(node)
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            for each in node.body:
                if isinstance(each, ast.FunctionDef) and each.name == "__init__":
                    found["Model"] = _arguments(each)
    return found


def _arguments(node: ast.FunctionDef) -> Arguments:
    names = [each.arg for each in node.args.args][-len(node.args.defaults) or len(node.args.args) :]
    pairs = zip(names, node.args.defaults, strict=True)
    return {name: value.value for name, value in pairs if isinstance(value, ast.Constant)}


def _problem(task: str, initial: Arguments, inputs: Arguments, defaults: dict[str, Arguments]) -> str:
    """Whole numbers are module-level names, so that judge can try others."""
    inputs = {**defaults["get_inputs"], **inputs}
    initial = {**defaults["Model"], **initial}
    sizes = {
        key: value
        for key, value in {**initial, **inputs}.items()
        if type(value) is int and value > 0 and initial.get(key, value) == value
    }

    def written(arguments: Arguments) -> dict[str, str]:
        return {key: f"size_{key}" if key in sizes else repr(value) for key, value in arguments.items()}

    return _PROBLEM.format(
        task=task,
        sizes="\n".join(f"size_{key} = {value}" for key, value in sizes.items()),
        inputs=", ".join(f"{key}={value}" for key, value in written(inputs).items()),
        initial=", ".join(f"{key!r}: {value}" for key, value in written(initial).items()),
    )


def _candidates(root: Path, folder: Path) -> Iterator[Path]:
    for suffix in _LANGUAGES:
        yield from sorted(path for path in folder.glob(f"forward*{suffix}") if path.name != TASK)
        yield from sorted((root / "highlighted" / folder.name / "forward").glob(f"*{suffix}"))


def _add_candidate(into: ConvertedFolder, problem: str, path: Path, task: str) -> None:
    text = into.text(path)
    if text is None:
        return
    if path.suffix == ".py":
        kernel = f"{text}\n\n_forward = forward"
    else:
        sources = {"cpp": "[]", "cuda": "[]", _LANGUAGES[path.suffix]: f"[{text!r}]"}
        given = f"cpp_sources={sources['cpp']}"
        given += f", cuda_sources={sources['cuda']}" if path.suffix == ".cu" else ""
        kernel = (
            "from torch.utils.cpp_extension import load_inline as _load_inline\n\n"
            f"_forward = _load_inline('robust_kbench_forward', {given}).forward"
        )
    name = f"highlighted.{path.stem}" if path.parent.name == "forward" else path.stem
    into.add_candidate(problem, name, _CANDIDATE.format(task=task, kernel=kernel), path)


def _recognizes(folder: Path) -> bool:
    return any((path.parent / CONFIG).exists() for path in files_named(folder, TASK))


ROBUST_KBENCH = ProblemSet(
    name="robust-kbench",
    description="func_forward.py and config_forward.json",
    recognizes=_recognizes,
    convert=convert,
)
