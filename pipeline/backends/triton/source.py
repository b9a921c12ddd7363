"""The implementation's module: its files, its launch function and the arguments of a call."""

import ast
import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline.backends.backend import CompileJob

Entry = Callable[..., None]


def local_sources(module: Path, root: Path) -> tuple[Path, ...]:
    """The module and, recursively, what it imports from the repository; the module comes first."""
    found: dict[Path, None] = {}
    waiting = [module]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found[path] = None
        waiting += _imported(path, root)
    return tuple(found)


def load_entry(job: CompileJob, root: Path) -> Entry:
    """Import the module anew and return its launch function.

    Anew, because kernels keep what was compiled for one device, and one process may serve several targets.
    """
    path = root / job.implementation.source
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise ImportError(f"{job.implementation.source}: not a Python module")
    module: ModuleType = importlib.util.module_from_spec(specification)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))  # its imports from the repository
    sys.modules[name] = module
    specification.loader.exec_module(module)
    entry: Entry = getattr(module, job.implementation.entry)
    return entry


def constants(job: CompileJob) -> dict[str, Any]:
    """All keyword arguments of a call but the tensors."""
    return {**job.problem.scalars, **job.variant.attributes, **job.variant.tunables}


def _imported(path: Path, root: Path) -> Iterator[Path]:
    """Files of the repository that a module names in its import statements."""
    package = path.relative_to(root).parts[:-1]
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError:  # compile will say so
        return
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                modules = [tuple(alias.name.split(".")) for alias in names]
            case ast.ImportFrom(module, names, level):
                base = package[: len(package) - level + 1] if level else ()
                base += tuple(module.split(".")) if module else ()
                modules = [base, *((*base, alias.name) for alias in names)]
            case _:
                continue
        for parts in modules:
            yield from _files(root, parts)


def _files(root: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """The module's file and the __init__ of every package on the way, where they are the repository's."""
    for depth in range(1, len(parts) + 1):
        initial = root.joinpath(*parts[:depth], "__init__.py")
        if initial.is_file():
            yield initial
    file = root.joinpath(*parts).with_suffix(".py") if parts else root
    if file.is_file():
        yield file
