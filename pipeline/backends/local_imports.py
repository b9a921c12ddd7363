"""Which files of a folder a module imports, directly or not, read from its source."""

import ast
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path


def closure(start: Iterable[Path], root: Path, *, within: str = "") -> tuple[Path, ...]:
    """The files and, recursively, what they import from `root`; those of `start` come first.

    `within` keeps to the packages of that name: a folder of installed packages holds many others.
    """
    found: dict[Path, None] = {}
    waiting = list(reversed(list(start)))
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found[path] = None
        stamp = path.stat().st_mtime_ns
        for parts in _names(path, root, stamp):
            if not within or parts[:1] == (within,):
                waiting += _files(root, parts)
    return tuple(found)


@functools.lru_cache(maxsize=4096)
def _names(path: Path, root: Path, _stamp: int) -> tuple[tuple[str, ...], ...]:
    """Modules that a module names in its import statements; a changed file is read again."""
    package = path.relative_to(root).parts[:-1]
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError:  # compile will say so
        return ()
    found: list[tuple[str, ...]] = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                found += [tuple(alias.name.split(".")) for alias in names]
            case ast.ImportFrom(module, names, level):
                base = package[: len(package) - level + 1] if level else ()
                base += tuple(module.split(".")) if module else ()
                found += [base, *((*base, alias.name) for alias in names)]
    return tuple(dict.fromkeys(found))


def _files(root: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """The module's file and the __init__ of every package on the way, where they lie in the folder."""
    for depth in range(1, len(parts) + 1):
        initial = root.joinpath(*parts[:depth], "__init__.py")
        if initial.is_file():
            yield initial
    file = root.joinpath(*parts).with_suffix(".py") if parts else root
    if file.is_file():
        yield file
