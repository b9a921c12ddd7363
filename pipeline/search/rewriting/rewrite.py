"""One change of a source, and the interface of what finds such changes."""

from collections.abc import Callable, Iterator, Mapping

from pipeline.records.record import Record
from pipeline.records.results.diagnosed import FindingCode


class Source(Record, frozen=True, kw_only=True):
    """What is rewritten, and for which device."""

    text: str
    limits: Mapping[str, int] = {}
    """Of the target, by name; what is absent is not known."""


class Rewrite(Record, frozen=True, kw_only=True):
    """A source that differs from its parent in one thing."""

    name: str
    """Of the transformation, with what it chose: `unroll=4`."""
    line: int
    """Of the parent where it was applied, counted from 1."""
    text: str


class Transformation(Record, frozen=True, kw_only=True):
    """What can be done to a source."""

    find: Callable[[Source], Iterator[Rewrite]]
    """Source -> every place where its precondition holds, with each of its choices."""
    called_for_by: Mapping[FindingCode, str]
    """Findings that call for it, each with what it does about that."""
    keeps: str
    """Why the result stays what it was, as far as the syntax can tell; verify has the last word."""


def replaced(text: str, start: int, end: int, piece: str) -> str:
    """The text with one piece changed."""
    return text[:start] + piece + text[end:]


def line_of(text: str, offset: int) -> int:
    """Counted from 1."""
    return text.count("\n", 0, offset) + 1
