"""Table of hardware counters in long form: results in, one row per variant, launch and counter out."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pipeline.performance.metrics import ColumnType
from pipeline.records.results.collection import Result
from pipeline.report.tables.variants_table import row_table

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA: dict[str, ColumnType] = {
    "task": "string",
    "variant": "string",
    "tool": "string",
    "launch": "int64",
    "kernel": "string",
    "counter": "string",
    "value": "double",
    "absent": "string",
}


def counters_table(results: Sequence[Result]) -> "pa.Table":
    """Values of the whole call (`launch` is null), then launch by launch.

    A counter that is not to be had has no value but the reason.
    """
    return row_table(SCHEMA, [row for result in results for row in _rows(result)])


def _rows(result: Result) -> Iterable[dict[str, object]]:
    counters = result.profiled.counters if result.profiled else None
    if counters is None:
        return
    who: dict[str, object] = {"task": result.task.task, "variant": result.id, "tool": counters.tool}
    for name, value in counters.values.items():
        yield who | {"counter": name, "value": value}
    for name, reason in counters.absent.items():
        yield who | {"counter": name, "absent": reason}
    for number, launch in enumerate(counters.kernels):
        for name, value in launch.values.items():
            yield who | {"launch": number, "kernel": launch.kernel, "counter": name, "value": value}
