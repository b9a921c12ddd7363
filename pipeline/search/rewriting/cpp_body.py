"""What the body of a C++ loop does. In: its text and statements. Out: assignments, local names, accesses.

A body is known when every statement of it is a declaration, an assignment or a loop over such: then it is
also known what it writes, and to where. Calls are allowed where they are to names that have no effects.
"""

import re
from collections.abc import Iterator

from pipeline.records.record import Record
from pipeline.search.rewriting.cpp_tree import Loop, Statement, blanked, loop_of

_PURE = re.compile(
    r"std::(?:abs|fabs|exp\w*|log\w*|sqrt|pow|erf|tanh|fma|min|max|clamp|int\d+_t)|__builtin_(?!prefetch)\w+"
    r"|static_cast|sizeof|float|double|int|vec::(?!store|stream|prefetch|Scratch)\w+"
)
_CALL = re.compile(r"((?:\w+::)*\w+)(?:<[\w:, *]*>)?\s*\(")
_DECLARED = re.compile(
    r"(?:const(?:expr)? )?(?!(?:return|delete|throw|else|goto|using|static|case)\b)"
    r"([\w:]+(?:<[\w:, ]*>)?)([*&]?) (?:const )?(\w+)(?: = (.*)|\{(.*)\})?",
    re.DOTALL,
)
_ASSIGNED = re.compile(r"(\w+)(\[.*?\])? (=|\+=|-=|\*=|/=) (.*)", re.DOTALL)
_BASED = re.compile(r"[A-Za-z_]\w*(?: \+ .+)?")
_POINTER = re.compile(r"\* (?:const )?(\w+) = &?(\w+)")
_EFFECT = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)")
_ACCESS = re.compile(r"\b(\w+)\s*\[")


class Assignment(Record, frozen=True, kw_only=True):
    """`name subscript operator value`."""

    name: str
    subscript: str | None
    """Without its brackets and blanks; None: a name alone."""
    operator: str
    value: str
    start: int
    end: int

    @property
    def place(self) -> str:
        """Left of the operator."""
        return self.name if self.subscript is None else f"{self.name}[{self.subscript}]"


class Body(Record, frozen=True, kw_only=True):
    """What is known of a loop's body; of all that is nested in it as well."""

    assignments: tuple[Assignment, ...]
    locals: tuple[str, ...]
    """Names that it declares, loop variables among them."""
    pointers: dict[str, str]
    """Local pointer -> what it is: `y + row * cols`."""
    loops: int
    code: str


def body_of(text: str, loop: Loop) -> Body | None:
    """None where anything in it is not understood."""
    code = blanked(text)
    assignments: list[Assignment] = []
    names: list[str] = []
    pointers: dict[str, str] = {}
    loops = 0
    for statement in _walk(loop.statement.body):
        if statement.kind == "for":
            inner = loop_of(text, statement)
            if inner is None or not all(_pure(each) for each in (inner.first, inner.limit, inner.step)):
                return None
            loops += 1
            names.append(inner.variable)
            continue
        piece = " ".join(code[statement.start : statement.end].rstrip("; \n").split())
        assigned = _ASSIGNED.fullmatch(piece)
        if assigned and _pure(assigned[4]) and _pure(assigned[2] or ""):
            assignments.append(_assignment(assigned, statement))
            continue
        declared = _DECLARED.fullmatch(piece)
        if statement.kind != "plain" or declared is None or not _pure(declared[4] or declared[5] or ""):
            return None
        names.append(declared[3])
        if declared[2] == "*" and _BASED.fullmatch(declared[4] or ""):
            pointers[declared[3]] = declared[4]
        elif declared[2]:
            return None  # another name for something that cannot be told
    inside = code[slice(*loop.statement.inside)] if loop.statement.inside else ""
    return Body(
        assignments=tuple(assignments), locals=tuple(names), pointers=pointers, loops=loops, code=inside
    )


def accesses(body: Body) -> Iterator[tuple[str, str]]:
    """Array and subscript of every access, through local pointers to what they point to; no blanks."""
    for found in _ACCESS.finditer(body.code):
        depth, end = 1, found.end()
        while depth and end < len(body.code):
            depth += (body.code[end] == "[") - (body.code[end] == "]")
            end += 1
        yield resolved(body, found[1], body.code[found.end() : end - 1])


def resolved(body: Body, name: str, subscript: str) -> tuple[str, str]:
    """Array and subscript, of a local pointer those of what it points into."""
    base, plus, offset = body.pointers.get(name, "").partition(" + ")
    if re.fullmatch(r"\w+", base) and base != name:
        return resolved(body, base, f"{offset}+{subscript}" if plus else subscript)
    return name, re.sub(r"\s", "", subscript)


def only_accessed(body: Body, array: str) -> bool:
    """Whether its name, and those of the pointers into it, stand only where an element is meant."""
    for name in (array, *body.pointers):
        begins = [meant for meant in body.pointers.values() if meant.partition(" + ")[0] == name]
        declared = 1 if name in body.pointers else 0
        if len(re.findall(rf"\b{name}\b(?!\s*\[)", body.code)) != len(begins) + declared:
            return False
    return True


def overlapping(text: str, arrays: set[str], written: set[str]) -> bool:
    """Whether one that is written and another one begin in the same, by the text's pointers."""
    bases = dict(_POINTER.findall(blanked(text)))

    def root(name: str) -> str:
        seen = {name}
        while bases.get(name, name) not in seen:
            name = bases[name]
            seen.add(name)
        return name

    return any(root(one) == root(other) for one in written for other in arrays if one != other)


def declared_names(text: str, loop: Loop) -> set[str]:
    """Names that the body declares at its own level."""
    code = blanked(text)
    pieces = (" ".join(code[each.start : each.end].rstrip("; \n").split()) for each in loop.statement.body)
    found = (_DECLARED.fullmatch(piece) for piece in pieces if not _ASSIGNED.fullmatch(piece))
    return {each[3] for each in found if each is not None}


def _walk(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    for statement in statements:
        if statement.kind == "block":
            yield from _walk(statement.body)
            continue
        yield statement
        yield from _walk(statement.body)


def _assignment(found: re.Match[str], statement: Statement) -> Assignment:
    subscript = re.sub(r"\s", "", found[2][1:-1]) if found[2] else None
    return Assignment(
        name=found[1], subscript=subscript, operator=found[3], value=found[4],
        start=statement.start, end=statement.end,
    )  # fmt: skip


def _pure(expression: str) -> bool:
    """No effect beside its value."""
    calls = (found[1] for found in _CALL.finditer(expression))
    known = all(_PURE.fullmatch(name) for name in calls)
    return known and _EFFECT.search(expression) is None and "{" not in expression
