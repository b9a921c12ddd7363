"""The width of a C++ loop's vectors. In: a source. Out: rewrites with `#pragma omp simd simdlen(N)`.

The directive (OpenMP 5.2, section 10.4) says that iterations may run side by side in N lanes, which the
compiler may not conclude by itself where pointers could overlap or a sum of floats would be reordered.
"""

import re
from collections.abc import Iterator

from pipeline.records.results.diagnosed import FindingCode
from pipeline.search.rewriting.cpp_body import (
    Assignment,
    Body,
    accesses,
    body_of,
    only_accessed,
    overlapping,
    resolved,
)
from pipeline.search.rewriting.cpp_tree import Loop, loop_of, mentions, statement_lists
from pipeline.search.rewriting.rewrite import Rewrite, Source, Transformation, line_of, replaced

_LANES = (4, 8, 16)
_FLOAT_BITS = 32
_OURS = "omp simd"


def _lanes(source: Source) -> tuple[int, ...]:
    """As far as two registers of the processor go, where its width is known."""
    bits = source.limits.get("vector_bits")
    return tuple(lanes for lanes in _LANES if bits is None or lanes * _FLOAT_BITS <= 2 * bits)


def _find(source: Source) -> Iterator[Rewrite]:
    """Innermost loops whose iterations touch elements of their own, and sums or extrema."""
    text = source.text
    for statements in statement_lists(text):
        for statement in statements:
            loop = loop_of(text, statement)
            if loop is None or loop.step != "1" or not _free(loop):
                continue
            body = body_of(text, loop)
            clauses = None if body is None or body.loops else _reductions(text, body, loop)
            if clauses is None:
                continue
            for lanes in _lanes(source):
                pragma = " ".join([f"#pragma {_OURS} simdlen({lanes})", *clauses])
                line = text.rfind("\n", 0, statement.start) + 1
                changed = replaced(text, loop.start if loop.pragma else line, line, f"{pragma}\n")
                if changed != text:
                    yield Rewrite(
                        name=f"vector width={lanes}", line=line_of(text, statement.start), text=changed
                    )


TRANSFORMATION = Transformation(
    find=_find,
    called_for_by={
        FindingCode.NO_VECTORS: "iterations run in lanes of one vector",
        FindingCode.NARROW_VECTORS: "asks for wider vectors",
        FindingCode.MEMORY_BOUND: "one instruction loads and stores several elements",
        FindingCode.FAR_FROM_CEILINGS: "several elements go through each instruction",
        FindingCode.COMPUTE_BOUND: "several elements go through each instruction",
    },
    keeps=(
        "each iteration writes elements of its own, which no other iteration names; sums and extrema are "
        "declared as reductions, so their order, and with it the rounding, changes"
    ),
)


def _free(loop: Loop) -> bool:
    """No pragma says how it runs, or ours does."""
    return loop.pragma is None or loop.pragma[2].startswith(_OURS)


def _reductions(text: str, body: Body, loop: Loop) -> list[str] | None:
    """A clause for each outer scalar that the loop accumulates; None where iterations depend on others."""
    clauses: dict[str, str] = {}
    arrays = {name for name, _ in accesses(body)}
    for each in body.assignments:
        if each.subscript is not None:
            if not _own_element(each, body, loop) or overlapping(text, arrays, {each.name}):
                return None
        elif each.name not in body.locals:
            operator = _reduction(each)
            count = len(re.findall(rf"\b{each.name}\b", body.code))
            used_once = count == (1 if each.operator == "+=" else 2)
            if operator is None or not used_once:
                return None
            clauses[each.name] = operator
    return [f"reduction({operator} : {name})" for name, operator in clauses.items()]


def _own_element(each: Assignment, body: Body, loop: Loop) -> bool:
    assert each.subscript is not None
    array, subscript = resolved(body, each.name, each.subscript)
    others = {place for name, place in accesses(body) if name == array}
    own = mentions(subscript, loop.variable) and others == {subscript}
    return own and array not in body.locals and only_accessed(body, array)


def _reduction(each: Assignment) -> str | None:
    if each.operator == "+=":
        return "+"
    extremum = re.fullmatch(r"std::(max|min)(?:<\w+>)?\((\w+), (.+)\)", each.value)
    return extremum[1] if each.operator == "=" and extremum and extremum[2] == each.name else None
