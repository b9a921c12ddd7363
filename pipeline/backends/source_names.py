"""Which names a source defines, read from its text: nothing is imported or compiled."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_EXPORTED = re.compile(r'(?:extern\s+"C"|__global__)[^;{]*?\b(\w+)\s*\(', re.DOTALL)
_WORD = re.compile(r"\w+")


def defined_names(path: Path) -> frozenset[str] | None:
    """Names that a Python module has at its top level; None if its text does not tell."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):  # the import reports it
        return None
    names = frozenset(_names(tree.body))
    return None if "*" in names or "__getattr__" in names else names


def _names(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((each.asname or each.name).partition(".")[0] for each in names)
            case ast.Assign() | ast.AnnAssign():
                yield from (each.id for each in ast.walk(node) if isinstance(each, ast.Name))
            case ast.If() | ast.Try() | ast.With():
                yield from _names([each for each in ast.walk(node) if isinstance(each, ast.stmt)][1:])


def exported_names(path: Path) -> frozenset[str]:
    """Functions that a C++ or CUDA C++ source exports, as far as its text shows them."""
    return frozenset(_EXPORTED.findall(_code(path)))


def mentions(path: Path, name: str) -> bool:
    """Whether a C++ or CUDA C++ source names it outside of comments; a macro may define it."""
    return name in _WORD.findall(_code(path))


def _code(path: Path) -> str:
    return _COMMENT.sub(" ", path.read_text(encoding="utf-8", errors="replace"))
