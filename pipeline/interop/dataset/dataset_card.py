"""The data set's card: what was counted while its rows were written in, a page in Markdown out."""

import collections
import datetime
from collections.abc import Iterable, Iterator, Sequence

from pipeline.interop.dataset.row_schema import SCHEMA_VERSION, DatasetRow, DatasetSource
from pipeline.records.record import Record

NONE = "none known"
_SHOWN = 40  # lines of one table; the rest is summed up


class ExportCounts(Record, frozen=True, kw_only=True):
    """What was written."""

    form: str
    rows: int
    pairs: int
    files: int
    unfinished: int
    """Tasks without all of their results."""
    left_out: int
    """Variants that did not verify and were not asked for."""
    sourceless: int
    """Proposals that came to no variant."""
    replayed: int
    """Variants whose measurements were recorded elsewhere and only replayed here."""


class RowCounts:
    """Counts rows as they are written."""

    def __init__(self) -> None:
        self._cells: collections.Counter[tuple[str, ...]] = collections.Counter()
        self._outcomes: collections.Counter[str] = collections.Counter()
        self._licences: collections.Counter[tuple[str, ...]] = collections.Counter()
        self._authors: collections.Counter[str] = collections.Counter()
        self._absent: collections.Counter[str] = collections.Counter()
        self._versions: dict[str, set[str]] = collections.defaultdict(set)
        self._experiments: collections.Counter[str] = collections.Counter()
        self._origins: collections.Counter[str] = collections.Counter()
        self.verified = 0
        self.measured = 0

    def add(self, row: DatasetRow) -> None:
        """One row."""
        measured = row.measurement is not None
        self.verified += row.verification is not None
        self.measured += measured
        self._cells[row.kernel, row.hardware, row.dtype, row.backend, "yes" if measured else "no"] += 1
        self._outcomes[str(row.outcome)] += 1
        self._experiments[row.experiment] += 1
        self._authors[row.author or "the repository"] += 1
        self._origins[row.origin or "this checkout"] += 1
        for what, source in (("source", row.source), ("reference", row.reference)):
            self._count(what, source)
        for made in row.made:
            self._versions["git"].add(made.git or "unknown")
            for fact in made.versions:
                self._versions[fact.name].add(fact.value)

    def _count(self, what: str, source: DatasetSource) -> None:
        text = "yes" if source.text is not None else "no"
        self._licences[what, source.licence or NONE, source.origin or "unknown", text] += 1
        if source.absent is not None:
            self._absent[f"{what}: {source.absent}"] += 1

    def card(self, tables: ExportCounts, command: str) -> str:
        """The page."""
        return "\n".join(self._lines(tables, command)) + "\n"

    def _lines(self, tables: ExportCounts, command: str) -> Iterator[str]:
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        yield from _heading(sorted({key[1] for key in self._licences}))
        yield "# Kernels with verdicts\n"
        yield f"Written by Kernelmill on {today}, schema version {SCHEMA_VERSION}, with\n"
        yield f"```sh\n{command}\n```\n"
        yield f"- `rows.{tables.form}`: {tables.rows:,} variants, {self.verified:,} of them passed the gate,"
        yield f"  {self.measured:,} were measured; `schema.json` has every field with its meaning."
        yield f"- `pairs.{tables.form}`: {tables.pairs:,} pairs of rows: one problem on two platforms."
        yield f"- `files.{tables.form}`: {tables.files:,} files that sources include, by digest."
        yield f"- Left out: {tables.left_out:,} variants that did not verify (`--failures` exports them),"
        yield f"  {tables.replayed:,} whose measurements were recorded elsewhere and only replayed here,"
        yield f"  {tables.sourceless:,} proposals that came to no variant, and of tasks that"
        yield f"  have not come to their end: {tables.unfinished:,}.\n"
        yield "Times were measured on the device that the row names, beside their baselines. Fields whose"
        yield "name begins with `estimate_` are estimates, as are findings whose `basis` says so; nothing"
        yield "else is. A verdict holds for the shapes, inputs and bounds of the gate that judged it.\n"
        yield from _table("Contents", ("kernel", "hardware", "dtype", "backend", "measured"), self._cells)
        yield from _table("Outcomes", ("outcome",), _keyed(self._outcomes))
        yield from _table("Licences", ("of", "licence", "origin", "text included"), self._licences)
        yield from _table("Texts that are absent", ("why",), _keyed(self._absent))
        yield from _table("Who wrote the sources", ("author",), _keyed(self._authors))
        yield from _table("Experiments", ("experiment",), _keyed(self._experiments))
        yield from _table("Where it was made", ("machine",), _keyed(self._origins))
        yield "## Versions\n"
        for name, values in sorted(self._versions.items()):
            yield f"- {name}: {', '.join(sorted(values))}"


def _heading(licences: Sequence[str]) -> Iterator[str]:
    """What hubs of data sets read: one licence where there is one for everything, else `other`."""
    one = licences[0].lower() if len(licences) == 1 and licences[0] != NONE else "other"
    yield f"---\nlicense: {one}\ntags: [kernels, code, performance]\n---\n"


def _keyed(counts: "collections.Counter[str]") -> "collections.Counter[tuple[str, ...]]":
    return collections.Counter({(name,): count for name, count in counts.items()})


def _table(
    title: str, columns: Iterable[str], counts: "collections.Counter[tuple[str, ...]]"
) -> Iterator[str]:
    """The largest counts first; nothing where nothing was counted."""
    if not counts:
        return
    names = (*columns, "rows")
    yield f"## {title}\n"
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * (len(names) - 1)}---:|"
    found = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    for key, count in found[:_SHOWN]:
        yield f"| {' | '.join(_cell(each) for each in key)} | {count:,} |"
    if len(found) > _SHOWN:
        rest = sum(count for _, count in found[_SHOWN:])
        yield f"| {len(found) - _SHOWN} more {' |' * (len(names) - 1)} {rest:,} |"
    yield ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
