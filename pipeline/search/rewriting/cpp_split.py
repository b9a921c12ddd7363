"""A sum over K in parts. In: a C++ source. Out: rewrites with several sums that do not wait for each other.

A chain of additions costs the latency of each of them. Split over N sums, N of them are under way at once;
the parts are added after the loop.
"""

import re
from collections.abc import Iterator

from pipeline.records.results.diagnosed import FindingCode
from pipeline.search.rewriting.cpp_body import Assignment, Body, body_of
from pipeline.search.rewriting.cpp_tree import Loop, loop_of, mentions, statement_lists
from pipeline.search.rewriting.rewrite import Rewrite, Source, Transformation, line_of, replaced

_PARTS = (2, 4, 8)


def _find(source: Source) -> Iterator[Rewrite]:
    """Innermost loops that do nothing but add to sums of their own."""
    text = source.text
    for statements in statement_lists(text):
        for statement in statements:
            loop = loop_of(text, statement)
            if loop is None or loop.pragma is not None:
                continue
            body = body_of(text, loop)
            sums = None if body is None or body.loops else _sums(body, loop)
            if not sums:
                continue
            for parts in _PARTS:
                piece = _split(text, loop, sums, parts)
                yield Rewrite(
                    name=f"split-K={parts}",
                    line=line_of(text, statement.start),
                    text=replaced(text, statement.start, statement.end, piece),
                )


TRANSFORMATION = Transformation(
    find=_find,
    called_for_by={
        FindingCode.FAR_FROM_CEILINGS: "additions no longer wait for each other",
        FindingCode.COMPUTE_BOUND: "additions no longer wait for each other",
        FindingCode.NO_VECTORS: "independent sums can share a vector",
    },
    keeps="the same terms are added, in another order: the rounding changes",
)


def _sums(body: Body, loop: Loop) -> tuple[Assignment, ...]:
    """What it accumulates; empty where it does anything else."""
    outer = [each for each in body.assignments if each.name not in body.locals]
    for each in outer:
        place = re.sub(r"\s", "", each.place)
        count = len(re.findall(rf"\b{each.name}\b", body.code))
        if each.operator != "+=" or count != 1 or mentions(place, loop.variable):
            return ()
        if any(mentions(place, name) for name in body.locals):
            return ()
    return tuple(outer)


def _split(text: str, loop: Loop, sums: tuple[Assignment, ...], parts: int) -> str:
    """A loop over `parts` steps at once, and one over what is left."""
    at, kind = f"split_{loop.variable}", loop.type if loop.type.startswith("const ") else f"const {loop.type}"
    inside = loop.statement.inside
    assert inside is not None
    declared = " ".join(
        f"decltype({each.place} + {each.place}) split_{number}_{part}{{}};"
        for number, each in enumerate(sums)
        for part in range(1, parts)
    )
    bodies = "\n".join(
        f"{{ {kind} {loop.variable} = {_stepped(at, part, loop)};{_body(text, loop, sums, part)} }}"
        for part in range(parts)
    )
    added = " ".join(
        f"{each.place} += {' + '.join(f'split_{number}_{part}' for part in range(1, parts))};"
        for number, each in enumerate(sums)
    )
    plain = loop.type.removeprefix("const ")
    return (
        f"{{\n{declared}\n{plain} {at} = {loop.first};\n"
        f"for (; {_stepped(at, parts - 1, loop)} < {loop.limit}; {at} += {parts} * ({loop.step})) {{\n"
        f"{bodies}\n}}\n"
        f"for (; {at} < {loop.limit}; {at} += {loop.step}) {{ {kind} {loop.variable} = {at};"
        f"{_body(text, loop, sums, 0)} }}\n{added}\n}}"
    )


def _stepped(at: str, part: int, loop: Loop) -> str:
    return at if part == 0 else f"{at} + {part} * ({loop.step})"


def _body(text: str, loop: Loop, sums: tuple[Assignment, ...], part: int) -> str:
    """Its text, adding to the sums of one part."""
    inside = loop.statement.inside
    assert inside is not None
    start, end = inside
    if part == 0:
        return text[start:end] + "\n"
    changed = text[start:end]
    for number, each in reversed(list(enumerate(sums))):
        operator = text.index("+=", each.start, each.end)
        changed = replaced(changed, each.start - start, operator - start, f"split_{number}_{part} ")
    return changed + "\n"
