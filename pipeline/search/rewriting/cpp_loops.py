"""Loops of C++ kernels. In: a source. Out: rewrites: unrolled, vectorised, in another order.

Comments, strings and preprocessor lines are blanked first, offsets stay. A loop is known by its header; the
language is not parsed beyond that, so what is no loop of three parts is left alone.
"""

import re
from collections.abc import Iterator, Mapping

from pipeline.records.record import Record
from pipeline.records.results.diagnosed import FindingCode
from pipeline.search.rewriting.cpp_tree import blanked, closing
from pipeline.search.rewriting.rewrite import Rewrite, Source, Transformation, line_of, replaced

_FOR = re.compile(r"\bfor \(")
_VARIABLE = re.compile(r"\s*(?:const )?[\w:]+ (\w+) = ")
_PRAGMA = re.compile(r"^[ \t]*#pragma (.*)\n\Z", re.MULTILINE)
_FACTORS = (2, 4, 8)


class _Loop(Record, frozen=True, kw_only=True):
    start: int
    """Of `for`."""
    header: tuple[int, int]
    """Between its parentheses."""
    variable: str | None
    pragma: tuple[int, int, str] | None
    """Where the line before it is one, and what it says."""


def _unroll(source: Source) -> Iterator[Rewrite]:
    """A loop with a variable of its own, and no pragma that says how it runs."""
    text = source.text
    for loop in _loops(text):
        if loop.variable is None or (loop.pragma and not loop.pragma[2].startswith("GCC unroll")):
            continue
        for factor in _FACTORS:
            yield from _with_pragma(text, loop, f"GCC unroll {factor}", f"unroll={factor}")


def _vectorise(source: Source) -> Iterator[Rewrite]:
    """The compiler may take its iterations for independent: where they are not, verify says so."""
    text = source.text
    for loop in _loops(text):
        if loop.variable is not None and loop.pragma is None:
            yield from _with_pragma(text, loop, "GCC ivdep", "ivdep")


def _loop_order(source: Source) -> Iterator[Rewrite]:
    """Two loops, one inside the other and nothing beside it, of which neither reads the other's variable."""
    text = source.text
    found = {loop.start: loop for loop in _loops(text)}
    code = blanked(text)
    for outer in found.values():
        inner = found.get(_only_statement(code, outer))
        if inner is None or None in (outer.variable, inner.variable) or outer.pragma:
            continue
        first, second = text[slice(*outer.header)], text[slice(*inner.header)]
        if _reads(second, outer.variable) or _reads(first, inner.variable):
            continue
        changed = replaced(text, *inner.header, first)
        yield Rewrite(
            name="loop order", line=line_of(text, outer.start), text=replaced(changed, *outer.header, second)
        )


TRANSFORMATIONS: Mapping[str, Transformation] = {
    "unroll": Transformation(
        find=_unroll,
        called_for_by={
            FindingCode.FAR_FROM_CEILINGS: "independent instructions of several iterations hide latencies",
            FindingCode.COMPUTE_BOUND: "fewer instructions that only count",
        },
        keeps="the same iterations in the same order",
    ),
    "ivdep": Transformation(
        find=_vectorise,
        called_for_by={
            FindingCode.NO_VECTORS: "the compiler need not fear that pointers overlap",
            FindingCode.NARROW_VECTORS: "the compiler need not fear that pointers overlap",
        },
        keeps="nothing but the word that iterations do not depend on each other: verify decides",
    ),
    "loop order": Transformation(
        find=_loop_order,
        called_for_by={
            FindingCode.MEMORY_BOUND: "memory is walked along in another order",
            FindingCode.FAR_FROM_CEILINGS: "memory is walked along in another order",
        },
        keeps="neither loop reads the other's variable; whether iterations may change places, verify decides",
    ),
}


def _loops(text: str) -> Iterator[_Loop]:
    """Loops of three parts that begin a line."""
    code = blanked(text)
    for found in _FOR.finditer(code):
        line = code.rfind("\n", 0, found.start()) + 1
        end = closing(code, found.end())
        if end is None or code[line : found.start()].strip() or code.count(";", found.end(), end) != 2:
            continue
        variable = _VARIABLE.match(code, found.end(), end)
        pragma = _PRAGMA.search(text, 0, line)
        yield _Loop(
            start=found.start(),
            header=(found.end(), end),
            variable=variable[1] if variable else None,
            pragma=(pragma.start(), pragma.end(), pragma[1]) if pragma else None,
        )


def _only_statement(code: str, loop: _Loop) -> int:
    """Where the loop's body begins with another loop that is all of it; -1 where it does not."""
    body = re.compile(r"\)\s*(\{?)\s*(?=for \()").match(code, loop.header[1])
    if body is None:
        return -1
    if not body[1]:
        return body.end()
    end = _statement_end(code, closing(code, body.end() + len("for (")))
    return body.end() if end is not None and re.match(r"\s*\}", code[end:]) else -1


def _statement_end(code: str, header_end: int | None) -> int | None:
    """Where the body of a loop ends: a block, or one statement that is no loop of its own."""
    if header_end is None:
        return None
    block = re.compile(r"\)\s*\{").match(code, header_end)
    if block is not None:
        closed = closing(code, block.end())
        return None if closed is None else closed + 1
    plain = re.compile(r"\)\s*(?!for\b|if\b|while\b)[^;{}]*;").match(code, header_end)
    return plain.end() if plain else None


def _reads(header: str, variable: str | None) -> bool:
    return variable is not None and re.search(rf"\b{variable}\b", header) is not None


def _with_pragma(text: str, loop: _Loop, pragma: str, name: str) -> Iterator[Rewrite]:
    """The loop with this pragma in the line before it, in place of the one that it has."""
    line = text.rfind("\n", 0, loop.start) + 1
    start, end = loop.pragma[:2] if loop.pragma else (line, line)
    changed = replaced(text, start, end, f"#pragma {pragma}\n")
    if changed != text:
        yield Rewrite(name=name, line=line_of(text, loop.start), text=changed)
