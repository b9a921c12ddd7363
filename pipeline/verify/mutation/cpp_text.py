"""A C++ source as operators see it: comments, strings and preprocessor lines are blank, offsets stay.

In: the source. Out: lines of code with their offsets, and the arguments of a call.
"""

import re
from collections.abc import Iterator

from pipeline.records.record import Record

_HIDDEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.DOTALL | re.MULTILINE
)
_PRAGMA = re.compile(r"^[ \t]*#pragma omp[^\n]*", re.MULTILINE)
_PAIRS = {")": "(", "]": "[", "}": "{"}


class Line(Record, frozen=True, kw_only=True):
    """One line of code."""

    start: int
    """Offset of its first character."""
    text: str
    """Blank where it is no code."""
    source: str
    """Code of the whole file, for what depends on declarations."""


def lines(source: str) -> Iterator[Line]:
    """Lines that hold code."""
    code = _HIDDEN.sub(_blank, source)
    start = 0
    for text in code.split("\n"):
        if text.strip():
            yield Line(start=start, text=text, source=code)
        start += len(text) + 1


def pragmas(source: str) -> Iterator[Line]:
    """The lines that tell OpenMP what to do."""
    for found in _PRAGMA.finditer(source):
        yield Line(start=found.start(), text=found[0], source=source)


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def arguments(text: str, opening: int) -> tuple[list[tuple[int, int]], int] | None:
    """Spans of a call's arguments, and the offset after its closing parenthesis; None where it goes on below.

    `opening` is the offset of its opening parenthesis.
    """
    spans: list[tuple[int, int]] = []
    depth, first = 0, opening + 1
    for at in range(opening, len(text)):
        character = text[at]
        if character in "([{":
            depth += 1
        elif character in _PAIRS:
            depth -= 1
        if (character == "," and depth == 1) or (character == ")" and depth == 0):
            spans.append(_stripped(text, first, at))
            first = at + 1
        if depth == 0:
            return spans, at + 1
    return None


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start] == " ":
        start += 1
    while end > start and text[end - 1] == " ":
        end -= 1
    return start, end
