"""Write a data set. In: an artifacts folder, and what is wanted of it. Out: tables, their schema, a card."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from pipeline.interop.dataset.artifact_results import FinishedTask, experiments, tasks
from pipeline.interop.dataset.dataset_card import ExportCounts, RowCounts
from pipeline.interop.dataset.dataset_rows import RowMaker, is_verified
from pipeline.interop.dataset.platform_pairs import PairCollector
from pipeline.interop.dataset.redaction import Redactor
from pipeline.interop.dataset.row_schema import DatasetRow, File, PlatformPair
from pipeline.interop.dataset.source_texts import Licensing, SourceTextReader
from pipeline.interop.dataset.table_files import Format, TableWriter, writer
from pipeline.records.configuration.kernel import Kernel
from pipeline.records.errors import StoreError
from pipeline.records.record import Record
from pipeline.store.atomic import new_folder

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
        if rows.rows == 0:
            raise StoreError(f"{root}: nothing to export: {run.why_nothing()}")
        with writer(scratch, "pairs", PlatformPair, wanted.form, cleaner) as pairs:
            for pair in run.pairs.pairs():
                pairs.write(pair)
        tables = run.tables(rows=rows.rows, pairs=pairs.rows, files=files.rows)
        card = run.tally.card(tables, wanted.command)
        (scratch / CARD).write_bytes(cleaner.encoded(card.encode()))
        (scratch / SCHEMA).write_bytes(schema())
    return tables


def schema() -> bytes:
    """JSON Schema of the three tables' rows."""
    parts, components = msgspec.json.schema_components(
        (DatasetRow, PlatformPair, File), ref_template="#/$defs/{name}"
    )
    named = dict(zip(("rows", "pairs", "files"), parts, strict=True))
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
        self._sourceless += read.told.sourceless
        for result in read.results:
            if result.task.recorded is not None:  # no gate of ours judged it, and it has no source
                self._replayed += 1
                continue
            verified = is_verified(result)
            if not verified and not self._wanted.failures:
                self._left_out += 1
                continue
            row = self._maker.row(result, read.told)
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

    def tables(self, *, rows: int, pairs: int, files: int) -> ExportCounts:
        """What was written and what was not."""
        return ExportCounts(
            form=self._wanted.form,
            rows=rows,
            pairs=pairs,
            files=files,
            unfinished=self._unfinished,
            left_out=self._left_out,
            sourceless=self._sourceless,
            replayed=self._replayed,
        )
