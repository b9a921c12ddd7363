"""The statements of a C++ source as a tree. In: the text. Out: lists of statements, loops with their parts.

Comments, strings and preprocessor lines are blanked first, offsets stay. Statements and their nesting are
parsed; an expression stays a text. What is none of the forms below is an opaque statement, and no rewrite
touches it or reaches over it.
"""

import re
from collections.abc import Iterator
from typing import Literal

from pipeline.records.record import Record

_HIDDEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.DOTALL | re.MULTILINE
)
_PRAGMA = re.compile(r"^[ \t]*#pragma (.*)\n\Z", re.MULTILINE)
_HEADED = re.compile(r"(for|while|if|switch)\b(?:\s*constexpr\b)?\s*\(")
_OPEN, _CLOSE = "([{", ")]}"
_INIT = re.compile(r"\s*((?:const )?[\w:]+) (\w+) = (.+?)\s*", re.DOTALL)
_LIMIT = re.compile(r"\s*(\w+) < (.+?)\s*", re.DOTALL)
_STEP = re.compile(r"\s*(?:\+\+(\w+)|(\w+)\+\+|(\w+) \+= (.+?))\s*", re.DOTALL)


class Statement(Record, frozen=True, kw_only=True):
    """One statement; offsets into the text."""

    kind: Literal["for", "branch", "block", "plain"]
    """`branch`: if, while, switch, with what belongs to it; `plain`: up to its semicolon."""
    start: int
    end: int
    header: tuple[int, int] | None = None
    """Between the parentheses of `for`."""
    body: "tuple[Statement, ...]" = ()
    inside: tuple[int, int] | None = None
    """Of `for` and `block`: from the first to the last character of the body, without its braces."""


class Loop(Record, frozen=True, kw_only=True):
    """`for (type variable = first; variable < limit; variable += step)`."""

    statement: Statement
    type: str
    variable: str
    first: str
    limit: str
    step: str
    pragma: tuple[int, int, str] | None
    """The line before it, where that is one, and what it says."""

    @property
    def start(self) -> int:
        """Of the loop with its pragma."""
        return self.pragma[0] if self.pragma else self.statement.start


def blanked(text: str) -> str:
    """The text with blanks for what is no code."""
    return _HIDDEN.sub(lambda hidden: re.sub(r"[^\n]", " ", hidden[0]), text)


def closing(code: str, start: int) -> int | None:
    """Offset of what closes the parenthesis or brace before `start`."""
    depth = 1
    for offset in range(start, len(code)):
        depth += (code[offset] in _OPEN) - (code[offset] in _CLOSE)
        if depth == 0:
            return offset
    return None


def statement_lists(text: str) -> Iterator[tuple[Statement, ...]]:
    """The statements of every pair of braces, and the single statement of every loop without them."""
    code = blanked(text)
    for brace in re.finditer(r"\{", code):
        end = closing(code, brace.end())
        if end is not None:
            listed = tuple(_statements(code, brace.end(), end))
            yield listed
            for statement in listed:
                yield from _unbraced(statement)


def loop_of(text: str, statement: Statement) -> Loop | None:
    """A loop that begins a line, with a variable of its own that goes up to a limit."""
    if statement.kind != "for" or statement.header is None:
        return None
    line = text.rfind("\n", 0, statement.start) + 1
    parts = text[slice(*statement.header)].split(";")
    if text[line : statement.start].strip() or len(parts) != 3:
        return None
    matches = [form.fullmatch(part) for form, part in zip((_INIT, _LIMIT, _STEP), parts, strict=True)]
    first, limit, step = matches
    if first is None or limit is None or step is None:
        return None
    names = {first[2], limit[1], next(name for name in step.groups()[:3] if name)}
    pragma = _PRAGMA.search(text, 0, line)
    if len(names) != 1 or "&&" in limit[2] or "||" in limit[2]:
        return None
    return Loop(
        statement=statement,
        type=first[1],
        variable=first[2],
        first=first[3],
        limit=limit[2],
        step=step[4] or "1",
        pragma=(pragma.start(), pragma.end(), pragma[1]) if pragma else None,
    )


def mentions(piece: str, name: str) -> bool:
    """Whether a piece of code has this name in it."""
    return re.search(rf"\b{name}\b", piece) is not None


def _unbraced(statement: Statement) -> Iterator[tuple[Statement, ...]]:
    """Of a loop without braces, whose body begins where its header ends."""
    if statement.header is None or statement.inside is None:
        return
    if statement.inside[0] == statement.header[1] + 1 and statement.body[0].kind == "for":
        yield statement.body
        yield from _unbraced(statement.body[0])


def _statements(code: str, start: int, end: int) -> Iterator[Statement]:
    while True:
        while start < end and code[start].isspace():
            start += 1
        if start >= end:
            return
        statement = _statement(code, start, end)
        yield statement
        start = max(statement.end, start + 1)


def _statement(code: str, start: int, end: int) -> Statement:
    if code[start] == "{":
        close = closing(code, start + 1) or end
        body = tuple(_statements(code, start + 1, close))
        return Statement(kind="block", start=start, end=close + 1, body=body, inside=(start + 1, close))
    headed = _HEADED.match(code, start, end)
    if headed is None:
        return Statement(kind="plain", start=start, end=_plain_end(code, start, end))
    close = closing(code, headed.end()) or end
    at = _after_blanks(code, close + 1, end)
    if at >= end:
        return Statement(kind="plain", start=start, end=end)
    inner = _statement(code, at, end)
    if headed[1] != "for":
        return Statement(kind="branch", start=start, end=_else_end(code, inner.end, end))
    is_block = inner.kind == "block"
    return Statement(
        kind="for",
        start=start,
        end=inner.end,
        header=(headed.end(), close),
        body=inner.body if is_block else (inner,),
        inside=inner.inside if is_block else (close + 1, inner.end),
    )


def _else_end(code: str, start: int, end: int) -> int:
    at = _after_blanks(code, start, end)
    if re.compile(r"else\b").match(code, at, end) is None:
        return start
    at = _after_blanks(code, at + len("else"), end)
    return _statement(code, at, end).end if at < end else end


def _plain_end(code: str, start: int, end: int) -> int:
    """After its semicolon, or after the brace of a definition."""
    offset = start
    while offset < end:
        letter = code[offset]
        if letter == ";":
            return offset + 1
        if letter in _OPEN:
            close = closing(code, offset + 1)
            if close is None or close >= end:
                return end
            follows = _after_blanks(code, close + 1, end)
            if letter == "{" and (follows >= end or code[follows] not in ";,.()[]{+-*/<>=?:|&"):
                return close + 1
            offset = close
        offset += 1
    return end


def _after_blanks(code: str, start: int, end: int) -> int:
    while start < end and code[start].isspace():
        start += 1
    return start
