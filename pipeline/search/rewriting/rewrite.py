"""The interface of a rewrite: a change of a source in one place, and what finds such places."""

from collections.abc import Callable, Iterator, Mapping

from pipeline.records.record import Record
from pipeline.records.results.diagnosed import FindingCode


class Source(Record, frozen=True, kw_only=True):
    """The source to rewrite, and the limits of its device."""

    text: str
    limits: Mapping[str, int] = {}
    """Limits of the target by name; absent ones are unknown."""


class Rewrite(Record, frozen=True, kw_only=True):
    """A source that differs from its parent in one thing."""

    name: str
    """Name of the transformation with its choice: `unroll=4`."""
    line: int
    """Line of the parent that was changed, counted from 1."""
    text: str


class Transformation(Record, frozen=True, kw_only=True):
    """A kind of rewrite."""

    find: Callable[[Source], Iterator[Rewrite]]
    """Source -> every place where its precondition holds, with each of its choices."""
    called_for_by: Mapping[FindingCode, str]
    """Findings that call for it, each with the effect of the rewrite."""
    keeps: str
    """Why the result should not change, judging by the syntax; verify decides."""


def replaced(text: str, start: int, end: int, piece: str) -> str:
    """The text with one piece changed."""
    return text[:start] + piece + text[end:]


def line_of(text: str, offset: int) -> int:
    """Counted from 1."""
    return text.count("\n", 0, offset) + 1
