"""Which source lines the instructions belong to: listings in, one count per line out (static, not time)."""

from collections import Counter
from collections.abc import Sequence

from pipeline.backends.machine_code.listing import Listing, SourceLine
from pipeline.records.record import Record

PROMINENT = ("matrix", "dot", "local", "vector_stack")
"""Classes for whose sake a line is shown, however few instructions it has."""


class LineCount(Record, frozen=True, kw_only=True):
    """One source line."""

    source: SourceLine | None
    """None for instructions that no line is to blame for."""
    instructions: int
    classes: dict[str, int]
    """Class -> count, the prominent ones first, then the most frequent; `all` left out."""


def line_counts(listings: Sequence[Listing]) -> tuple[LineCount, ...]:
    """Every source line with its instructions, the one with the most first."""
    totals: Counter[SourceLine | None] = Counter()
    classes: dict[SourceLine | None, Counter[str]] = {}
    for listing in listings:
        for each in listing.instructions:
            totals[each.source] += 1
            classes.setdefault(each.source, Counter()).update(name for name in each.classes if name != "all")
    return tuple(
        LineCount(source=source, instructions=count, classes=_ordered(classes[source]))
        for source, count in totals.most_common()
    )


def shown_lines(counts: Sequence[LineCount], most: int) -> tuple[LineCount, ...]:
    """The first `most` lines, and of the others those with prominent instructions."""
    return tuple(
        count
        for place, count in enumerate(counts)
        if place < most or any(name in count.classes for name in PROMINENT)
    )


def _ordered(classes: Counter[str]) -> dict[str, int]:
    order = sorted(classes, key=lambda name: (name not in PROMINENT, -classes[name], name))
    return {name: classes[name] for name in order}
