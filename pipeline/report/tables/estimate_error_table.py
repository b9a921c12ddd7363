"""The table `estimate_error` and its lines for people: errors of the bounds in, rows and texts out."""

import collections
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipeline.performance.bound_error import TaskError
from pipeline.performance.metrics import ColumnType
from pipeline.performance.quantities import counted, digits
from pipeline.report.tables.variants_table import row_table

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]
"""Of the table."""

ESTIMATE_ERROR: dict[str, ColumnType] = {
    "task": "string",
    "kernel": "string",
    "workload": "string",
    "hardware": "string",
    "dtype": "string",
    "basis": "string",
    "fits_cache": "bool",
    "variants": "int64",
    "ratio_least": "double",
    "ratio_low": "double",
    "ratio_quarter": "double",
    "ratio_median": "double",
    "ratio_three_quarters": "double",
    "ratio_high": "double",
    "below": "int64",
    "refused": "int64",
    "distinct": "int64",
    "kendall": "double",
    "spearman": "double",
    "best": "double",
}
WORDS = {
    "declared_peaks": "declared peaks",
    "declared_peaks_and_launch": "declared peaks and the variant's launch",
    "measured_ceilings": "measured ceilings and the variant's code",
}


def error_table(errors: Sequence[TaskError]) -> "pa.Table":
    """One row per task and basis; `ratio_…`: measured over estimated time."""
    return row_table(ESTIMATE_ERROR, [_row(entry) for entry in errors])


def error_lines(rows: Sequence[Row]) -> list[str]:
    """One line per hardware and basis of the table: how far the bound is, and how often it was wrong."""
    groups: dict[tuple[str, str], list[Row]] = collections.defaultdict(list)
    for row in rows:
        groups[row["hardware"], row["basis"]].append(row)
    return [_line(hardware, basis, group) for (hardware, basis), group in groups.items()]


def _row(entry: TaskError) -> dict[str, object]:
    task = entry.result.task
    row: dict[str, object] = {
        name: getattr(task, name) for name in ("task", "kernel", "workload", "hardware", "dtype")
    }
    row |= {name: getattr(entry, name) for name in ("basis", "fits_cache", "refused")}
    return row | {name: getattr(entry.error, name) for name in entry.error.__struct_fields__}


def _line(hardware: str, basis: str, group: Sequence[Row]) -> str:
    medians = sorted(row["ratio_median"] for row in group)
    span = digits(medians[0]) if len(medians) == 1 else f"{digits(medians[0])} to {digits(medians[-1])}"
    below, variants, refused = (sum(row[name] for row in group) for name in ("below", "variants", "refused"))
    line = (
        f"estimate on {hardware} from {WORDS[basis]}: a measured call takes {span} times as long "
        f"(medians of {counted(len(group), 'task')}), {below} of {variants} below the bound"
    )
    return line + (f", {refused} more refused as over_roofline" if refused else "")
