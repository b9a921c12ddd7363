"""Identity of Python code: a module's source in, a digest of what it does and the strings in it out.

A module counts as its syntax tree without docstrings: comments, docstrings and formatting change no digest.
"""

import ast
import functools

from pipeline.records.record import Record, digest_bytes


class ParsedModule(Record, frozen=True, kw_only=True):
    """What identity needs of a module's source."""

    digest: str
    strings: frozenset[str]
    """Every string in it: one may name a module or a file."""


def code_digest(source: bytes) -> str:
    """Digest of a Python source without comments, docstrings and formatting."""
    return parse_module(source).digest


@functools.lru_cache(maxsize=2048)  # one process may make several plans
def parse_module(source: bytes) -> ParsedModule:
    """Its digest, without comments, docstrings and formatting, and its strings."""
    strings: set[str] = set()
    form = syntax_form(ast.parse(source), strings)
    return ParsedModule(digest=digest_bytes(repr(form).encode()), strings=frozenset(strings))


def syntax_form(node: object, strings: set[str]) -> object:
    """A syntax tree as nested tuples, equal in every version of Python, so that results are comparable.

    `ast.dump` differs: versions add fields (`type_params` in 3.12) or leave empty ones out (3.13). What is
    absent or empty is left out here, so that a field that a version does not know makes no difference.
    All strings, those of docstrings too, are added to `strings`. One pass: a plan reads some 300 modules.
    """
    if isinstance(node, list):
        return tuple([syntax_form(each, strings) for each in node])
    if isinstance(node, ast.JoinedStr):
        # Python 3.12.1 puts an empty text behind some replacement fields, other versions do not.
        return ("JoinedStr", *[syntax_form(part, strings) for part in node.values if not _is_empty(part)])
    if not isinstance(node, ast.AST):
        return node
    parts: list[object] = [type(node).__name__]
    for name in node._fields:
        value = getattr(node, name, None)
        if name == "body" and isinstance(value, list):
            value = _without_texts(value, strings)
        elif name == "value" and isinstance(value, str) and isinstance(node, ast.Constant):
            strings.add(value)
        if value is not None and value != []:
            parts.append((name, syntax_form(value, strings)))
    return tuple(parts)


def _without_texts(body: list[ast.stmt], strings: set[str]) -> list[ast.stmt]:
    strings.update(each.value.value for each in body if _is_text(each))  # type: ignore[attr-defined]
    return [each for each in body if not _is_text(each)]


def _is_empty(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and part.value == ""


def _is_text(statement: ast.stmt) -> bool:
    """A docstring, also one below a field."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
