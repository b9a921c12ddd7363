"""The installed packages that a candidate imports: part of what its verdict depends on.

In: the syntax tree of a candidate. Out: their digests by name, and whether they name a module (`triton`).
Packages that the candidate imports are read whole, those that they require in turn count with their version.
The standard library, and what belongs to the toolchain of every verdict, is left out.
"""

import ast
import functools
import importlib.metadata
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from pipeline.records.record import digest_bytes, digest_parts

_TOOLCHAIN = frozenset({"torch", "triton", "numpy", "pipeline"})
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_CODE = frozenset({".py", ".so", ".cu", ".cuh", ".cpp", ".h", ".json"})


def imported_packages(tree: ast.AST) -> tuple[str, ...]:
    """Names of the top-level packages that the statements of a file import, wherever they stand."""
    found: set[str] = set()
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.partition(".")[0])
    return tuple(sorted(found - _TOOLCHAIN - sys.stdlib_module_names))


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements; expressions, by far the most nodes, hold none."""
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            inside = getattr(node, field, ())
            if isinstance(inside, list):
                todo += inside


@functools.cache
def package_digests(name: str) -> dict[str, str]:
    """Of all files of a package and of what it requires; empty where it is not installed."""
    files = _files(name)
    if not files:
        return {}
    # Read anew in each run, as a package that is installed for development changes.
    own = digest_parts({str(path): digest_bytes(path.read_bytes()) for path in files})
    return {name: own, **dict(_required(name))}


@functools.cache
def names_module(name: str, module: str) -> bool:
    """Whether a package's own sources name a module."""
    word = module.encode()
    return any(word in path.read_bytes() for path in _files(name) if path.suffix == ".py")


@functools.cache
def _files(name: str) -> tuple[Path, ...]:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return ()
    if spec is None:
        return ()
    if spec.submodule_search_locations is None:
        return (Path(spec.origin),) if spec.origin and Path(spec.origin).is_file() else ()
    folders = [Path(folder) for folder in spec.submodule_search_locations]
    found = (path for folder in folders for path in folder.rglob("*") if path.suffix in _CODE)
    return tuple(sorted(path for path in found if path.is_file()))


def _required(name: str) -> Iterator[tuple[str, str]]:
    """Distributions that the package's own requires, directly or not, and that are installed."""
    todo = list(importlib.metadata.packages_distributions().get(name, ()))
    seen: set[str] = set()
    while todo:
        distribution = todo.pop()
        if distribution in seen:
            continue
        seen.add(distribution)
        try:
            found = importlib.metadata.distribution(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
        yield f"{distribution} (version)", found.version
        for requirement in found.requires or ():
            if "extra ==" not in requirement:
                todo.append(_NAME.match(requirement)[0])  # type: ignore[index]
