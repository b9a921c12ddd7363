"""One column of a table: its name, its type, what it says, and where its value comes from."""

from collections.abc import Callable
from typing import Literal

from pipeline.records.profiled import Profiled
from pipeline.records.record import Record
from pipeline.records.results import Result

ColumnType = Literal["string", "bool", "int64", "double"]


class Column(Record, frozen=True, kw_only=True):
    """One column; `value` gives None where the result does not have it."""

    name: str
    type: ColumnType
    meaning: str
    value: Callable[[Result], object]
    unit: str = ""


def measured(name: str, meaning: str, unit: str, value: Callable[[Profiled], object]) -> Column:
    """A number that profile measured; absent where it did not."""
    return Column(
        name=name,
        type="double",
        meaning=meaning,
        unit=unit,
        value=lambda result: value(result.profiled) if result.profiled else None,
    )
