"""The loop over K of a sum, taken out of the loop over its elements. In: a C++ source. Out: rewrites.

A sum for each element walks along K: down a column of the second factor, from row to row. With K outside, the
innermost loop walks along neighbours, which caches and vectors like; the sums wait in the result.
"""

import re
from collections.abc import Iterator

from pipeline.records.record import Record
from pipeline.records.results.diagnosed import FindingCode
from pipeline.search.rewriting.cpp_body import accesses, body_of, overlapping
from pipeline.search.rewriting.cpp_tree import Loop, blanked, loop_of, mentions, statement_lists
from pipeline.search.rewriting.rewrite import Rewrite, Source, Transformation, line_of, replaced

_BEGUN = re.compile(r"(\w+) (\w+) = (-?[\d.]+f?);")
_STORED = re.compile(r"(\w+)\[(.+)\] = (\w+);", re.DOTALL)


class _Sum(Record, frozen=True, kw_only=True):
    """`for element { type name = begin; for step { name += …; } place = name; }`."""

    element: Loop
    step: Loop
    name: str
    begin: str
    place: str
    added: tuple[int, int]
    """Of the name where a term is added to it."""


def _find(source: Source) -> Iterator[Rewrite]:
    """Loops whose body is a sum and nothing else, with a result of the sum's own type."""
    text = source.text
    for statements in statement_lists(text):
        for statement in statements:
            loop = loop_of(text, statement)
            found = _sum(text, loop) if loop is not None and loop.pragma is None else None
            if found is not None:
                yield Rewrite(
                    name="loop order of a sum",
                    line=line_of(text, statement.start),
                    text=replaced(text, statement.start, statement.end, _reordered(text, found)),
                )


TRANSFORMATION = Transformation(
    find=_find,
    called_for_by={
        FindingCode.NO_VECTORS: "the innermost loop walks along neighbours, which fit a vector",
        FindingCode.NARROW_VECTORS: "the innermost loop walks along neighbours, which fit a vector",
        FindingCode.MEMORY_BOUND: "the innermost loop uses all of each cache line",
        FindingCode.FAR_FROM_CEILINGS: "the innermost loop walks along neighbours; no sum waits for itself",
    },
    keeps="each element's terms are added in the same order and in the same type",
)


def _sum(text: str, element: Loop) -> _Sum | None:
    body = element.statement.body
    if [each.kind for each in body] != ["plain", "for", "plain"]:
        return None
    code = blanked(text)
    begun = _BEGUN.fullmatch(code[body[0].start : body[0].end])
    stored = _STORED.fullmatch(code[body[2].start : body[2].end])
    step = loop_of(text, body[1])
    inside = body_of(text, step) if step is not None else None
    if begun is None or stored is None or step is None or inside is None or inside.loops or step.pragma:
        return None
    sums = [each for each in inside.assignments if each.name not in inside.locals]
    single = len(sums) == 1 and (sums[0].name, sums[0].subscript, sums[0].operator) == (begun[2], None, "+=")
    same = stored[3] == begun[2] and len(re.findall(rf"\b{begun[2]}\b", inside.code)) == 1
    typed = re.search(rf"\b{begun[1]}\s*\*\s*(?:__restrict(?:__)? )?{stored[1]}\b", code) is not None
    if not (single and same and typed) or any(
        mentions(stored[2], name) for name in (begun[2], step.variable)
    ):
        return None
    varies = any(mentions(each, element.variable) for each in (step.first, step.limit, step.step))
    arrays = {name for name, _ in accesses(inside)} | {stored[1]}
    if varies or mentions(inside.code, stored[1]) or overlapping(text, arrays, {stored[1]}):
        return None
    if not mentions(stored[2], element.variable) or element.variable == step.variable:
        return None
    start = sums[0].start
    return _Sum(
        element=element, step=step, name=begun[2], begin=begun[3],
        place=f"{stored[1]}[{stored[2]}]", added=(start, start + len(begun[2])),
    )  # fmt: skip


def _reordered(text: str, found: _Sum) -> str:
    inside, header = found.step.statement.inside, found.element.statement.header
    assert inside is not None and header is not None
    head = text[found.element.statement.start : header[1] + 1]
    step = text[found.step.statement.start : inside[0]].rstrip("{ \n")
    start, end = (offset - inside[0] for offset in found.added)
    body = replaced(text[slice(*inside)], start, end, found.place)
    return f"{head} {{\n{found.place} = {found.begin};\n}}\n{step} {{\n{head} {{{body}\n}}\n}}"
