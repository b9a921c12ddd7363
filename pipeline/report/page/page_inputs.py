"""What the report is made from: the folder that aggregate wrote, and where the page will lie."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.records.record import Record
from pipeline.records.results.aggregated import Summary

if TYPE_CHECKING:
    import pyarrow as pa


class AggregateTables(Record, frozen=True, kw_only=True):
    """The folder that aggregate wrote."""

    folder: Path
    summary: Summary

    def read(self, name: str, columns: Sequence[str] | None = None) -> "pa.Table":
        """One table, or some of its columns."""
        import pyarrow.parquet as pq

        # `read_table` would import Arrow's data sets and pandas, for half a second.
        with pq.ParquetFile(self.folder / self.summary.tables[name]) as file:
            # Where no thread can be started any more, Arrow waits for one for ever.
            return file.read(columns=columns, use_threads=False)

    def lists(self, name: str, columns: Sequence[str]) -> list[list[Any]]:
        """Values of some columns: a record per row takes many times as long."""
        table = self.read(name, columns)
        return [table.column(column).to_pylist() for column in columns]

    def columns(self, name: str) -> list[str]:
        """Names of a table's columns."""
        import pyarrow.parquet as pq

        return list(pq.read_schema(self.folder / self.summary.tables[name]).names)


class PageLinks(Record, frozen=True, kw_only=True):
    """From the report to files under the artifacts' root."""

    root: Path
    page: Path
    """Where the report will lie."""

    def to(self, path: str) -> str:
        """Relative link to a file of the store, so that the folder can be moved as a whole."""
        return self.to_file(self.root / path)

    def to_file(self, path: Path) -> str:
        """Relative link to any file."""
        return Path(os.path.relpath(path.resolve(), self.page.parent.resolve())).as_posix()
