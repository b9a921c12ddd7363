"""Tables of an experiment: results in, pyarrow tables with explicit schemas out.

Absent values are null, never 0 or NaN. The columns of the table `variants` are the metrics declared in
`pipeline.performance.metrics`: those with fixed names, then the families (tunables, instruction classes,
baselines, counters).
"""

import collections
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.performance.metrics import ColumnType, metrics_of
from pipeline.records.planning.specs import TaskRow
from pipeline.records.results.collection import Result
from pipeline.records.results.profiled import Timing
from pipeline.records.results.variant import Generated

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.performance.metrics import ColumnType


def array(values: Sequence[Any], kind: "ColumnType") -> "pa.Array":
    """An array whose absent values are None.

    Raises
    ------
    TypeError, ValueError, OverflowError
        A value is not of this kind.
    """
    import numpy as np
    import pyarrow as pa

    kept = np.array([value is not None for value in values], dtype=bool)
    validity = None if kept.all() else pa.py_buffer(np.packbits(kept, bitorder="little"))
    arrow_type = pa.type_for_alias(kind)
    if kind == "string":
        _require(values, str)
        content = [b"" if value is None else value.encode() for value in values]
        ends = np.cumsum([0, *map(len, content)], dtype=np.int64)
        if ends[-1] >= 1 << 31:
            raise OverflowError("more than 2 GiB of text in one array")
        data = [pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(content))]
    elif kind == "bool":
        _require(values, bool)
        bits = np.array([bool(value) for value in values], dtype=bool)
        data = [pa.py_buffer(np.packbits(bits, bitorder="little"))]
    elif kind == "int64":
        _require(values, int)
        data = [pa.py_buffer(np.array([0 if value is None else value for value in values], dtype=np.int64))]
    else:
        numbers = [0.0 if value is None else value for value in values]
        data = [pa.py_buffer(np.array(numbers, dtype=np.float64))]
    return pa.Array.from_buffers(arrow_type, len(values), [validity, *data])


def repeated(texts: Sequence[str], lengths: Sequence[int]) -> "pa.DictionaryArray":
    """Each text so many times, kept as a number into the distinct ones."""
    import numpy as np
    import pyarrow as pa

    places: dict[str, int] = {}
    codes = [places.setdefault(text, len(places)) for text in texts]
    rows = np.repeat(np.array(codes, dtype=np.int32), lengths)
    indices = pa.Array.from_buffers(pa.int32(), len(rows), [None, pa.py_buffer(rows)])
    return pa.DictionaryArray.from_arrays(indices, array(list(places), "string"))


def _require(values: Sequence[Any], kind: type) -> None:
    """numpy would cut a fraction off without a word."""
    for value in values:
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"got {value!r}, expected {kind.__name__}")


OUTCOMES: dict[str, ColumnType] = {
    "kernel": "string",
    "workload": "string",
    "hardware": "string",
    "implementation": "string",
    "stage": "string",
    "outcome": "string",
    "count": "int64",
}
PRUNED: dict[str, ColumnType] = {
    "scope": "string",
    "task": "string",
    "kernel": "string",
    "workload": "string",
    "hardware": "string",
    "implementation": "string",
    "rule": "string",
    "reason": "string",
    "count": "int64",
    "space": "int64",
}
SAMPLES = ("task", "variant", "callable", "process", "batch", "seconds")


def variants_table(results: Sequence[Result]) -> "pa.Table":
    """One row per task and variant."""
    columns = metrics_of(results)
    data = {metric.name: [metric.value(result) for result in results] for metric in columns}
    metadata = {metric.name: {"unit": metric.unit, "meaning": metric.meaning} for metric in columns}
    return typed_table({metric.name: metric.type for metric in columns}, data, metadata)


def samples_table(results: Sequence[Result]) -> "pa.Table":
    """Raw samples in long form: seconds per call, one row per batch, in the order taken."""
    import pyarrow as pa

    series = list(_series(results))
    lengths = [len(timing.samples) for _, timing in series]
    # Dictionary encoded: three texts per sample would be most of the file.
    arrays = [repeated([label[place] for label, _ in series], lengths) for place in range(3)]
    seconds = list(itertools.chain.from_iterable(timing.samples for _, timing in series))
    batches = list(itertools.chain.from_iterable(map(range, lengths)))
    processes = list(itertools.chain.from_iterable(timing.process_of_each() for _, timing in series))
    arrays += [array(processes, "int64"), array(batches, "int64"), array(seconds, "double")]
    return pa.Table.from_arrays(arrays, names=SAMPLES)


def outcomes_table(results: Sequence[Result]) -> "pa.Table":
    """How often each stage ended how: every variant counts once in every stage that it reached."""
    counts: collections.Counter[tuple[str, ...]] = collections.Counter()
    for result in results:
        task = result.task
        who = (task.kernel, task.workload, task.hardware, result.variant.implementation)
        counts[(*who, "generate", "passed")] += 1
        for stage, record in result.records.items():
            counts[(*who, stage, str(getattr(record.result, "outcome", "passed")))] += 1
    return row_table(
        OUTCOMES, [dict(zip(OUTCOMES, (*key, count), strict=True)) for key, count in counts.items()]
    )


def pruned_table(cells: Sequence[str], points: Sequence[tuple[TaskRow, Generated]]) -> "pa.Table":
    """What was left out before anything ran: cells of the grid, and points that a constraint excludes."""
    rows: list[dict[str, object]] = [{"scope": "cell", "reason": reason} for reason in cells]
    for task, generated in points:
        for left_out in generated.pruned:
            rows.append(
                {
                    "scope": "points",
                    "task": task.task,
                    "kernel": task.kernel,
                    "workload": task.workload,
                    "hardware": task.hardware,
                    "implementation": left_out.implementation,
                    "rule": left_out.rule,
                    "reason": left_out.reason,
                    "count": left_out.count,
                    "space": generated.space.get(left_out.implementation),
                }
            )
    return row_table(PRUNED, rows)


def row_table(schema: Mapping[str, ColumnType], rows: Sequence[Mapping[str, object]]) -> "pa.Table":
    """A table of rows; a key that a row lacks is null in it."""
    return typed_table(schema, {name: [row.get(name) for row in rows] for name in schema})


def typed_table(
    types: Mapping[str, ColumnType],
    data: Mapping[str, list[Any]],
    metadata: Mapping[str, dict[str, str]] | None = None,
) -> "pa.Table":
    """A table with an explicit schema."""
    import pyarrow as pa

    fields = [
        pa.field(name, pa.type_for_alias(kind), metadata=(metadata or {}).get(name))
        for name, kind in types.items()
    ]
    arrays = [array(data[field.name], types[field.name]) for field in fields]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def to_parquet(table: "pa.Table") -> memoryview:
    """One table as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return memoryview(sink.getvalue())


def to_csv(table: "pa.Table") -> memoryview:
    """One table as CSV; null is the empty field."""
    import pyarrow as pa
    import pyarrow.csv

    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, sink)
    return memoryview(sink.getvalue())


def _series(results: Sequence[Result]) -> Iterable[tuple[tuple[str, str, str], Timing]]:
    """Task, variant and callable of every measured series, and the series."""
    for result in results:
        if result.profiled is None:
            continue
        yield (result.task.task, result.id, "candidate"), result.profiled.timing
        for comparison in result.profiled.comparisons:
            yield (result.task.task, result.id, comparison.baseline), comparison.timing
