"""Sources in C++ and CUDA C++: their files, their copies, and the macros that a variant is compiled with."""

import re
import shutil
from pathlib import Path

from pipeline.backends.backend import CompileJob
from pipeline.records.configuration.kernel import Implementation, TunableValue
from pipeline.records.errors import ConfigError

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def source_files(implementation: Implementation, root: Path) -> tuple[Path, ...]:
    """The source and, transitively, what it includes in quotes.

    Raises
    ------
    ConfigError
        There is no such source, or it includes a file outside of the repository.
    """
    main = (root / implementation.source).resolve()
    if not main.is_file():
        raise ConfigError(f"{implementation.source}: no such file; `source` is a path from the repository")
    found = {main: None}
    todo = [main]
    while todo:
        for include in _local_includes(todo.pop(), root.resolve()):
            if include not in found:
                found[include] = None
                todo.append(include)
    return tuple(found)


def copy_sources(files: tuple[Path, ...], root: Path, folder: Path) -> tuple[Path, ...]:
    """Copy them into a folder, each where it is below `root`; the relative paths."""
    names = tuple(path.relative_to(root.resolve()) for path in files)
    for name in names:
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, copy)
    return names


def macros(job: CompileJob) -> tuple[str, ...]:
    """`NAME` or `NAME=value`: element type, tunables and attributes of one variant."""
    names = [f"ELEMENT_{job.problem.element.upper()}"]
    names += [f"{name}={_literal(value)}" for name, value in job.variant.tunables.items()]
    for name, value in job.variant.attributes.items():
        if isinstance(value, str):
            names.append(f"{name.upper()}_{value.upper()}")
        else:
            names.append(f"{name.upper()}={_literal(value)}")
    return tuple(names)


def definitions(job: CompileJob) -> list[str]:
    """The same as arguments of a compiler."""
    return [f"-D{macro}" for macro in macros(job)]


def _literal(value: TunableValue) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _local_includes(source: Path, root: Path) -> list[Path]:
    """What a file includes in quotes and what exists; the compiler reports what does not."""
    found = []
    for name in _INCLUDE.findall(source.read_text(errors="replace")):
        path = (source.parent / name).resolve()
        if not path.is_file():
            continue
        if not path.is_relative_to(root):
            raise ConfigError(f"{source.relative_to(root)}: includes {path}, which is outside the repository")
        found.append(path)
    return found
