"""One column of a table: its name, its type, what it says, and where its value comes from."""

from collections.abc import Callable
from typing import Literal

from pipeline.analyze.collect import Result
from pipeline.records.record import Record

ColumnType = Literal["string", "bool", "int64", "double"]


class Column(Record, frozen=True, kw_only=True):
    """One column; `value` gives None where the result does not have it."""

    name: str
    type: ColumnType
    meaning: str
    value: Callable[[Result], object]
    unit: str = ""
