"""What the report is made of: the tables of aggregate as they are read, and the data of its charts."""

import collections
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pipeline.performance.metrics import shown_metrics
from pipeline.performance.metrics.rates_and_ceilings import CACHES
from pipeline.performance.quantities import baseline
from pipeline.performance.roofline import compute_peak, estimate_roofline_seconds, peak_rates
from pipeline.records.planning.specs import AggregateSpec, TaskRow
from pipeline.records.record import Record
from pipeline.records.results.aggregated import Summary, Winner
from pipeline.report.tables.variants_table import array

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


FINDINGS = "findings"
DIAGNOSIS = {
    "name": FINDINGS,
    "heading": "diagnosis",
    "kind": "findings",
    "title": "Findings of the table diagnoses",
}
ONE_TASK = ("kernel", "workload", "hardware", "dtype")
"""Columns that the table of variants shows if they differ: else the page's title says it."""
DIAGNOSIS_POSITION = 130  # among the metrics that are shown
HIDDEN = (
    "implementation",
    "task",
    "variant",
    "reason",
    "log",
    "compile_folder",
    "default",
    "flops_per_second",
    "bound",
    "memory_level",
)


def page_data(spec: AggregateSpec, tables: AggregateTables, links: PageLinks) -> dict[str, Any]:
    """All that the scripts of the page draw from."""
    winners = [winner for winner in tables.summary.winners if isinstance(winner, Winner)]
    names = list(dict.fromkeys(entry.baseline for winner in winners for entry in winner.compared))
    return {
        "baselines": [{"name": name, "label": baseline(name)} for name in names],
        "tasks": [_task(task) for task in spec.tasks],
        "winners": [{"task": winner.task, "variant": winner.variant} for winner in winners],
        "variants": _variants(tables, names),
        "roofs": _roofs(tables),
        "effects": _finite(tables.read("effects").to_pylist()),
        "samples": _samples(tables, winners),
        "root": links.to(""),
    }


def _task(task: TaskRow) -> dict[str, Any]:
    bandwidth, arithmetic = peak_rates(task)
    return {
        "task": task.task,
        "label": f"{task.kernel} · {task.workload} · {task.hardware}",
        "kernel": task.kernel,
        "workload": task.workload,
        "hardware": task.hardware,
        "dtype": task.dtype,
        "unit": task.unit,
        "flops": task.flops,
        "bytes": task.bytes,
        "intensity": task.flops / task.bytes if task.flops is not None and task.bytes else None,
        "peak_bandwidth": bandwidth,
        "peak_flops": arithmetic,
        "peak_name": compute_peak(task),
        "estimate_seconds": estimate_roofline_seconds(task),
        "optimization": task.optimization,
    }


def _variants(tables: AggregateTables, baselines: Sequence[str]) -> dict[str, Any]:
    """Column-wise: a list per column is a third of the size of a record per row."""
    shown = _shown(baselines)
    beside = [f"{kind}.{name}{part}" for name in baselines for kind, part in _BESIDE]
    beside += ["median_seconds_low", "median_seconds_high"]
    available = tables.columns("variants")
    names = [
        name
        for name in dict.fromkeys([*(column["name"] for column in shown), *beside, *HIDDEN])
        if name in available
    ]
    table = tables.read("variants", names)
    pairs = [table.column(name).to_pylist() for name in ("task", "variant")]
    findings, found = _findings(tables, list(zip(*pairs, strict=True)))
    columns = {name: column_json(table.column(name)) for name in names}
    columns[FINDINGS] = msgspec.Raw(msgspec.json.encode(found))
    # A column in which nothing stands (registers on a CPU) would only push the others out of sight.
    filled = {name for name in names if table.column(name).null_count < table.num_rows}
    filled |= {FINDINGS} if findings else set()
    filled -= {name for name in ONE_TASK if name in filled and len(set(table.column(name).to_pylist())) == 1}
    return {
        "shown": [column for column in shown if column["name"] in filled],
        "columns": columns,
        "findings": findings,
        "rows": table.num_rows,
    }


def _shown(baselines: Sequence[str]) -> list[dict[str, str]]:
    """The columns of the report's table: the declared metrics, and the diagnosis among them."""
    columns = [
        (
            shown.position,
            {"name": metric.name, "heading": shown.heading, "kind": shown.style, "title": metric.meaning},
        )
        for metric, shown in shown_metrics(baselines)
    ]
    return [
        column for _, column in sorted([*columns, (DIAGNOSIS_POSITION, DIAGNOSIS)], key=lambda pair: pair[0])
    ]


_BESIDE = (("speedup", ".low"), ("speedup", ".high"), ("verdict", ""), ("absent", ""))


def _findings(
    tables: AggregateTables, variants: Sequence[tuple[str, str]]
) -> tuple[list[dict[str, str]], list[list[int] | None]]:
    """Distinct findings, and which of them each row has: variants share most of their sentences."""
    of_variant, said = ("task", "variant"), ("code", "basis", "sentence")
    table = tables.read("diagnoses", [*of_variant, *said])
    owners, first = numbered(table, of_variant)
    places, distinct = numbered(table, said)
    found: list[list[int]] = [[] for _ in range(len(first))]
    for owner, place in zip(owners, places, strict=True):
        found[owner].append(place)
    pairs = zip(*(first.column(name).to_pylist() for name in of_variant), strict=True)
    rows = dict(zip(pairs, found, strict=True))
    return distinct.select(said).to_pylist(), [rows.get(pair) for pair in variants]


def numbered(table: "pa.Table", names: Sequence[str]) -> tuple[list[int], "pa.Table"]:
    """For each row the number of its values in these columns together, and for each number its first row.

    They are numbered in the order in which they occur: a table has many rows with few of them.
    """
    import numpy as np

    numbers = np.zeros(len(table), dtype=np.int64)
    first = numbers[:1]
    for name in names:
        column = table.column(name).dictionary_encode(null_encoding="encode").combine_chunks()
        # Through DLPack: `to_numpy` would import pandas.
        codes = numbers * len(column.dictionary) + np.from_dlpack(column.indices)
        _, first, numbers = np.unique(codes, return_index=True, return_inverse=True)
    places = np.argsort(np.argsort(first))
    return places[numbers].tolist(), take(table, np.sort(first).tolist())


def take(table: "pa.Table", rows: Sequence[int]) -> "pa.Table":
    """These rows; Arrow would import pandas to read a list of numbers."""
    return table.take(array(rows, "int64"))


def _roofs(tables: AggregateTables) -> list[dict[str, Any]]:
    """Ceilings as measured, the median over the jobs of one target and dtype."""
    caches = {name: f"ceiling_{name.lower()}_bandwidth" for name in CACHES}
    names = ("ceiling_copy_bandwidth", "ceiling_vector_flops", "ceiling_matrix_flops")
    rows = tables.read("variants", ["hardware", "dtype", *names, *caches.values()]).to_pylist()
    groups: dict[tuple[str, str], list[dict[str, Any]]] = collections.defaultdict(list)
    for row in rows:
        if row["ceiling_copy_bandwidth"] is not None:
            groups[(row["hardware"], row["dtype"])].append(row)
    return [
        {"hardware": hardware, "dtype": dtype, "jobs": len(group)}
        | {name.removeprefix("ceiling_"): _median([row[name] for row in group]) for name in names}
        | {"caches": _caches(group, caches)}
        for (hardware, dtype), group in groups.items()
    ]


def _caches(rows: list[dict[str, Any]], columns: Mapping[str, str]) -> list[dict[str, Any]]:
    """Copy bandwidth of each cache, from the nearest; those that could not be measured apart are left out."""
    measured = {
        name: [row[column] for row in rows if row[column] is not None] for name, column in columns.items()
    }
    return [{"name": name, "bandwidth": _median(values)} for name, values in measured.items() if values]


def _samples(tables: AggregateTables, winners: Sequence[Winner]) -> dict[str, dict[str, list[float]]]:
    """Task -> callable -> raw samples of the winner and its baselines."""
    wanted = {(winner.task, winner.variant) for winner in winners}
    samples: dict[str, dict[str, list[float]]] = {}
    if wanted:
        table = tables.read("samples")
        for (task, variant, name), start, length in _series(table, ("task", "variant", "callable")):
            if (task, variant) in wanted:
                seconds = table.column("seconds").slice(start, length).to_pylist()
                series = samples.setdefault(task, {}).setdefault(name, [])
                series += [float(f"{value:.5g}") for value in seconds]
    return samples


def _series(table: "pa.Table", names: Sequence[str]) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """Labels, start and length of runs of equal labels: the table holds one series after the other."""
    import numpy as np

    if not len(table):
        return
    columns = [table.column(name).combine_chunks() for name in names]
    labels = [column.dictionary.to_pylist() for column in columns]
    # Through DLPack: `to_numpy` would import pandas.
    codes = np.stack([np.from_dlpack(column.indices) for column in columns])
    starts = [0, *(np.flatnonzero(np.any(np.diff(codes) != 0, axis=0)) + 1).tolist()]
    for start, end, series in zip(
        starts, [*starts[1:], len(table)], codes[:, starts].T.tolist(), strict=True
    ):
        yield tuple(label[code] for label, code in zip(labels, series, strict=True)), start, end - start


def column_json(column: "pa.ChunkedArray") -> msgspec.Raw:
    """A column as JSON; five significant digits are more than a page shows, the tables have all."""
    values = column.to_pylist()
    if str(column.type) != "double":
        return msgspec.Raw(msgspec.json.encode(values))
    texts = [f"{value:.5g}" if value is not None and math.isfinite(value) else "null" for value in values]
    return msgspec.Raw(f"[{','.join(texts)}]".encode())


def _short(values: list[Any]) -> list[Any]:
    """Five significant digits are more than a page shows; the tables have all."""
    return [
        None
        if isinstance(value, float) and not math.isfinite(value)
        else float(f"{value:.5g}")
        if isinstance(value, float)
        else value
        for value in values
    ]


def _finite(rows: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [dict(zip(row, _short(list(row.values())), strict=True)) for row in rows]


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
