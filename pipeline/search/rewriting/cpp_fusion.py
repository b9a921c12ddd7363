"""A following loop over the result, merged into the loop that stores it. In: a C++ source. Out: rewrites.

The elements are in registers or in the L1 cache when the second loop's work is done on them, in place of
going to memory and back.
"""

import itertools
import re
from collections.abc import Iterator

from pipeline.records.results.diagnosed import FindingCode
from pipeline.search.rewriting.cpp_body import (
    Body,
    accesses,
    body_of,
    declared_names,
    only_accessed,
    overlapping,
    resolved,
)
from pipeline.search.rewriting.cpp_tree import Loop, loop_of, mentions, statement_lists
from pipeline.search.rewriting.rewrite import Rewrite, Source, Transformation, line_of, replaced

_DIRECTIVE = re.compile(r"^[ \t]*#(?!pragma)", re.MULTILINE)


def _find(source: Source) -> Iterator[Rewrite]:
    """Two loops, one after the other, that go the same way and meet at equal elements only."""
    text = source.text
    for first, second in _pairs(text):
        changed, start = _merged(text, first, second)
        while True:  # what is nested in both may follow each other now
            inner = next((pair for pair in _pairs(changed) if _within(pair, changed, start)), None)
            if inner is None:
                break
            changed, _ = _merged(changed, *inner)
        yield Rewrite(name="fused epilogue", line=line_of(text, second.statement.start), text=changed)


TRANSFORMATION = Transformation(
    find=_find,
    called_for_by={
        FindingCode.MEMORY_BOUND: "the result makes one way to memory, not two",
        FindingCode.FAR_FROM_CEILINGS: "the result is used while it is in a register",
        FindingCode.LAUNCH_BOUND: "one loop is started in place of two",
    },
    keeps=(
        "every element that one loop writes is named by the other one in the same iteration only, and no "
        "variable passes from one to the other"
    ),
)


def _pairs(text: str) -> Iterator[tuple[Loop, Loop]]:
    for statements in statement_lists(text):
        for before, after in itertools.pairwise(statements):
            first, second = loop_of(text, before), loop_of(text, after)
            if first is None or second is None or not _alike(first, second):
                continue
            if _DIRECTIVE.search(text, before.start, after.end):
                continue
            one, two = body_of(text, first), body_of(text, second)
            if one is None or two is None or _overlap(text, one, two):
                continue
            if _independent((first, one), (second, two)):
                yield first, second


def _alike(first: Loop, second: Loop) -> bool:
    """The same iterations, and the same word on how they run."""
    parts = ("type", "first", "limit", "step")
    said = [loop.pragma[2].strip() if loop.pragma else None for loop in (first, second)]
    same = all(getattr(first, part) == getattr(second, part) for part in parts)
    return same and said[0] == said[1] and "reduction" not in (said[0] or "")


def _independent(former: tuple[Loop, Body], latter: tuple[Loop, Body]) -> bool:
    """Nothing passes between them but elements that belong to the iteration."""
    (first, one), (second, two) = former, latter
    header = f"{first.first};{first.limit};{first.step}"
    if any(mentions(header, each.name) for body in (one, two) for each in body.assignments):
        return False
    if second.variable != first.variable and mentions(one.code, second.variable):
        return False
    for body, other in ((one, two), (two, one)):
        for each in body.assignments:
            if each.subscript is None and each.name not in body.locals and mentions(other.code, each.name):
                return False
    renamed = re.compile(rf"\b{second.variable}\b")
    places = [*accesses(one), *((name, renamed.sub(first.variable, at)) for name, at in accesses(two))]
    written = _written(one) | _written(two)
    local = {*one.locals, *two.locals} - {*one.pointers, *two.pointers}
    for array in written - local:
        at = {subscript for name, subscript in places if name == array}
        if len(at) != 1 or not mentions(next(iter(at)), first.variable):
            return False
    return not written & local and all(only_accessed(body, name) for body in (one, two) for name in written)


def _written(body: Body) -> set[str]:
    """Arrays that it writes to."""
    return {
        resolved(body, each.name, each.subscript)[0]
        for each in body.assignments
        if each.subscript is not None
    }


def _overlap(text: str, *bodies: Body) -> bool:
    arrays = {name for body in bodies for name, _ in accesses(body)}
    return overlapping(text, arrays, set().union(*(_written(body) for body in bodies)))


def _merged(text: str, first: Loop, second: Loop) -> tuple[str, int]:
    """The text with one loop in place of two, and where that begins."""
    inside, tail = first.statement.inside, second.statement.inside
    assert inside is not None and tail is not None
    header = first.statement.header
    assert header is not None
    follows = re.sub(rf"\b{second.variable}\b", first.variable, text[slice(*tail)])
    body = text[slice(*inside)].rstrip(), follows.rstrip()
    if declared_names(text, first) & declared_names(text, second):
        body = f"\n{{{body[0]}\n}}", f"\n{{{body[1]}\n}}"
    between = text[first.statement.end : second.start].strip()
    head = text[first.statement.start : header[1] + 1]
    note = f"\n{between}" if between else ""
    loop = f"{head} {{{body[0]}{note}\n{body[1]}\n}}"
    return replaced(text, first.statement.start, second.statement.end, loop), first.statement.start


def _within(pair: tuple[Loop, Loop], text: str, start: int) -> bool:
    """Whether both lie in the loop that begins at `start`."""
    first = pair[0].statement.start
    for statements in statement_lists(text):
        for statement in statements:
            if statement.start == start and statement.kind == "for":
                return start < first and pair[1].statement.end <= statement.end
    return False
