"""One metric: its name, unit, type and meaning, how to get it from a result, and how it is shown and tracked.

A metric is declared once. The table `variants` (CSV and Parquet), MLflow, the report's table and glossary,
and the reference in the docs all follow from the declaration.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from pipeline.records.record import Record
from pipeline.records.results.collection import Result
from pipeline.records.results.profiled import Profiled

ColumnType = Literal["string", "bool", "int64", "double"]
Style = Literal["text", "code", "outcome", "seconds", "share", "count", "estimate", "speedup", "findings"]
"""How the report writes a value: `share` as a percentage, `seconds` with a fitting unit, …"""
MICROSECONDS = 1e6
GIGA = 1e-9


class Shown(Record, frozen=True, kw_only=True):
    """How the report's table of variants shows a metric."""

    heading: str
    style: Style
    position: int
    """Metrics are shown from the smallest position to the largest."""


class MetricDeclaration(Record, frozen=True, kw_only=True):
    """What is said of a metric, whatever it is a metric of."""

    name: str
    """Column in CSV and Parquet."""
    type: ColumnType
    meaning: str
    unit: str = ""
    mlflow: str = ""
    """Name in MLflow; empty: the same name."""
    mlflow_scale: float = 1.0
    """What MLflow logs is the value times this: microseconds are easier to read in its UI than seconds."""
    mlflow_kind: Literal["metric", "tag", ""] = ""
    """Empty: numbers are metrics, texts and truth values are tags."""

    @property
    def mlflow_name(self) -> str:
        """Name in MLflow."""
        return self.mlflow or self.name

    @property
    def mlflow_unit(self) -> str:
        """Unit of what MLflow logs."""
        return {MICROSECONDS: "µ", GIGA: "G"}.get(self.mlflow_scale, "") + self.unit

    @property
    def is_mlflow_metric(self) -> bool:
        """Whether MLflow holds it as a metric; if not, as a tag."""
        if self.mlflow_kind:
            return self.mlflow_kind == "metric"
        return self.type in ("int64", "double")


class Metric(MetricDeclaration, frozen=True, kw_only=True):
    """A metric of a variant; `value` returns None if the result does not have it."""

    value: Callable[[Result], object]
    shown: Shown | None = None
    """None: not in the report's table of variants; the glossary lists every metric."""


class MetricFamily(Record, frozen=True, kw_only=True):
    """Metrics whose names depend on the results: one for each tunable, baseline, counter, ..."""

    prefixes: tuple[str, ...]
    """Beginnings of the names of its columns, which no other metric's name has."""
    members: Callable[[Sequence[Result]], Sequence[Metric]]
    documented: tuple[Metric, ...]
    """The metrics of one member, with a placeholder for its name."""


def of_profile(value: Callable[[Profiled], object]) -> Callable[[Result], object]:
    """The value of what profile measured; None if it measured nothing."""
    return lambda result: value(result.profiled) if result.profiled else None
