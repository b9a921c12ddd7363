"""A change of one line of a source: an operator's proposal, and the mutant that it makes."""

from collections.abc import Callable, Iterator

from pipeline.records.record import Record, digest
from pipeline.records.results.mutated import Mutant


class Edit(Record, frozen=True, kw_only=True):
    """Replace some bytes of a source, all of them in one line."""

    start: int
    end: int
    text: str
    host: bool = False


Operator = Callable[[str], Iterator[Edit]]
"""Source text -> every place where the mistake can be made, in order. Offsets count characters of ASCII-safe
text: sources are decoded as Latin-1, so that a character is a byte."""


def make_mutant(operator: str, file: str, source: str, edit: Edit) -> Mutant | None:
    """The mutant that an edit makes; None where it changes nothing or reaches over a line's end."""
    first = source.rfind("\n", 0, edit.start) + 1
    last = source.find("\n", edit.end)
    last = len(source) if last < 0 else last
    before = source[first:last]
    after = source[first : edit.start] + edit.text + source[edit.end : last]
    if "\n" in before or before == after:
        return None
    line = source.count("\n", 0, edit.start) + 1
    same = source[:first].count(f"{before}\n")  # equal lines are told apart by their order
    identity = digest([file, before.strip(), after.strip(), same])[:8]
    return Mutant(
        id=f"{operator}-{identity}",
        operator=operator,
        file=file,
        line=line,
        before=_readable(before),
        after=_readable(after),
        start=edit.start,
        end=edit.end,
        replacement=edit.text,
        host=edit.host,
    )


def apply(mutant: Mutant, source: str) -> str:
    """The source with the mistake in it."""
    return source[: mutant.start] + mutant.replacement + source[mutant.end :]


def _readable(line: str) -> str:
    return line.strip().encode("latin-1").decode(errors="replace")
