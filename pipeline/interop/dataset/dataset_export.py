"""Write a data set: an artifacts folder and a selection in; tables, their schema and a card out."""

import collections
import datetime
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from pipeline.interop.dataset.attempt_rows import attempt_rows
from pipeline.interop.dataset.dataset_rows import FinishedTask, RowMaker, experiments, is_verified, tasks
from pipeline.interop.dataset.row_schema import (
    SCHEMA_VERSION,
    AttemptRow,
    DatasetRow,
    DatasetSource,
    File,
    PlatformPair,
)
from pipeline.interop.dataset.source_texts import Licensing, Redactor, SourceTextReader
from pipeline.interop.dataset.table_files import Format, TableWriter, writer
from pipeline.records.configuration.kernel import Kernel
from pipeline.records.errors import StoreError
from pipeline.records.outcome import Outcome
from pipeline.records.record import Record, digest
from pipeline.store.atomic import new_folder


class _Best(NamedTuple):
    """Compares by what makes a variant the better one; the id only breaks ties."""

    rank: int
    seconds: float
    id: str
    kernel: str


_CHOSEN = ("fastest", "default", "first")


class PairCollector:
    """Collects the best row of each problem and platform."""

    def __init__(self) -> None:
        self._best: dict[str, dict[str, _Best]] = {}

    def add(self, row: DatasetRow, *, default: bool) -> None:
        """Look at a verified row."""
        platforms = self._best.setdefault(row.group, {})
        name = f"{row.backend}/{row.kind}"
        found = _best(row, default=default)
        known = platforms.get(name)
        # Of rows that cannot be told apart, the first one stays.
        if known is None or found[:2] < known[:2]:
            platforms[name] = found

    def pairs(self) -> Iterator[PlatformPair]:
        """Each two platforms of a problem once, in the order of their names."""
        for group, platforms in self._best.items():
            for left, right in itertools.combinations(sorted(platforms), 2):
                one, other = platforms[left], platforms[right]
                yield PlatformPair(
                    id=digest([one.id, other.id]),
                    group=group,
                    kernel=one.kernel,
                    left=one.id,
                    left_platform=left,
                    left_chosen=_CHOSEN[one.rank],
                    right=other.id,
                    right_platform=right,
                    right_chosen=_CHOSEN[other.rank],
                )


def _best(row: DatasetRow, *, default: bool) -> _Best:
    if row.measurement is not None and row.outcome is Outcome.PASSED:
        return _Best(rank=0, seconds=row.measurement.seconds.value, id=row.id, kernel=row.kernel)
    return _Best(rank=1 if default else 2, seconds=0.0, id=row.id, kernel=row.kernel)


NONE = "none known"
_SHOWN = 40  # lines of one table; the rest is summed up


class ExportCounts(Record, frozen=True, kw_only=True):
    """What was written."""

    form: str
    rows: int
    pairs: int
    files: int
    attempts: int
    """Of coding agents."""
    unfinished: int
    """Tasks without all of their results."""
    left_out: int
    """Variants that did not verify and were not asked for."""
    sourceless: int
    """Proposals without a variant."""
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
        yield f"- `attempts.{tables.form}`: {tables.attempts:,} submissions of agents, refused ones too."
        yield f"- Left out: {tables.left_out:,} variants that did not verify (`--failures` exports them),"
        yield f"  {tables.replayed:,} whose measurements were recorded elsewhere and only replayed here,"
        yield f"  {tables.sourceless:,} proposals without a variant, and"
        yield f"  {tables.unfinished:,} tasks that have not finished.\n"
        yield "Times were measured on the device that the row names, together with their baselines. Fields"
        yield "whose name begins with `estimate_` are estimates, as are findings whose `basis` says so;"
        yield "nothing else is. A verdict holds for the shapes, inputs and bounds of its gate.\n"
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


CARD, SCHEMA = "README.md", "schema.json"


class ExportSelection(Record, frozen=True, kw_only=True):
    """What to export."""

    root: str
    """The artifacts folder."""
    out: str
    """The folder to write; it must not be there."""
    experiment: str | None = None
    form: Format = "jsonl"
    failures: bool = False
    """With variants that did not verify."""
    licensing: Licensing = Licensing()
    command: str = ""
    """For the card."""


def export(wanted: ExportSelection, kernels: Mapping[str, Kernel], folder: Path) -> ExportCounts:
    """Write the data set whole or not at all; `kernels` are those that the checkout at `folder` declares.

    Raises
    ------
    StoreError
        The folder is there already, nothing is to be exported, or something cannot be read or written.
    """
    target, root = Path(wanted.out), Path(wanted.root)
    if target.exists():
        raise StoreError(f"--out {target}: is there already: name another folder, or remove it")
    specs = experiments(root, wanted.experiment)
    cleaner = Redactor(folder, root)
    with new_folder(target) as scratch:
        run = _Export(wanted, kernels, cleaner, folder)
        with (
            writer(scratch, "rows", DatasetRow, wanted.form, cleaner) as rows,
            writer(scratch, "files", File, wanted.form, cleaner) as files,
        ):
            for read in tasks(specs, root):
                run.add(read, rows, files)
        with writer(scratch, "attempts", AttemptRow, wanted.form, cleaner) as attempts:
            # They belong to no experiment.
            for row in attempt_rows(root, wanted.licensing, cleaner) if wanted.experiment is None else ():
                attempts.write(row)
        if rows.rows == attempts.rows == 0:
            raise StoreError(f"{root}: nothing to export: {run.why_nothing()}")
        with writer(scratch, "pairs", PlatformPair, wanted.form, cleaner) as pairs:
            for pair in run.pairs.pairs():
                pairs.write(pair)
        tables = run.tables(rows=rows.rows, pairs=pairs.rows, files=files.rows, attempts=attempts.rows)
        card = run.tally.card(tables, wanted.command)
        (scratch / CARD).write_bytes(cleaner.encoded(card.encode()))
        (scratch / SCHEMA).write_bytes(schema())
    return tables


def schema() -> bytes:
    """JSON Schema of the four tables' rows."""
    parts, components = msgspec.json.schema_components(
        (DatasetRow, PlatformPair, File, AttemptRow), ref_template="#/$defs/{name}"
    )
    named = dict(zip(("rows", "pairs", "files", "attempts"), parts, strict=True))
    found = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": named,
        "$defs": components,
    }
    return msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"


class _Export:
    def __init__(
        self, wanted: ExportSelection, kernels: Mapping[str, Kernel], cleaner: Redactor, folder: Path
    ) -> None:
        root = Path(wanted.root)
        self._wanted = wanted
        self._texts = SourceTextReader(
            kernels, folder=folder, root=root, licensing=wanted.licensing, cleaner=cleaner
        )
        self._maker = RowMaker(kernels, self._texts, cleaner, root)
        self._seen: set[str] = set()
        self.pairs = PairCollector()
        self.tally = RowCounts()
        self._unfinished = self._left_out = self._sourceless = self._replayed = 0

    def add(self, read: FinishedTask | None, rows: TableWriter, files: TableWriter) -> None:
        """One task; a row that another task had is not written again."""
        if read is None:
            self._unfinished += 1
            return
        self._sourceless += read.context.sourceless
        for result in read.results:
            if result.task.recorded is not None:  # no gate of ours judged it, and it has no source
                self._replayed += 1
                continue
            verified = is_verified(result)
            if not verified and not self._wanted.failures:
                self._left_out += 1
                continue
            row = self._maker.row(result, read.context)
            if row.id in self._seen:
                continue
            self._seen.add(row.id)
            rows.write(row)
            self.tally.add(row)
            if verified:
                self.pairs.add(row, default=result.default is True)
            for file in self._texts.files():
                files.write(file)

    def why_nothing(self) -> str:
        """Where no row was written."""
        return (
            f"{self._left_out} variants that did not verify (--failures exports them),"
            f" {self._replayed} that were recorded elsewhere (their verdicts are not ours),"
            f" {self._unfinished} tasks without all of their results (run them first)"
        )

    def tables(self, *, rows: int, pairs: int, files: int, attempts: int) -> ExportCounts:
        """What was written and what was not."""
        return ExportCounts(
            form=self._wanted.form,
            rows=rows,
            pairs=pairs,
            files=files,
            attempts=attempts,
            unfinished=self._unfinished,
            left_out=self._left_out,
            sourceless=self._sourceless,
            replayed=self._replayed,
        )
