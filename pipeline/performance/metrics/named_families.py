"""Metrics with one member for each name found in the results: tunables, instruction classes, counters."""

from collections.abc import Callable, Sequence

from pipeline.performance.metrics.metric import ColumnType, Metric, MetricFamily
from pipeline.records.results.collection import Result

SUFFIX = ":u"
"""Of a counter that counts user space only."""


def _tunables(results: Sequence[Result]) -> list[Metric]:
    values: dict[str, set[type]] = {}
    for result in results:
        for name, value in result.variant.tunables.items():
            values.setdefault(name, set()).add(type(value))
    return [_tunable(name, _type_of(types)) for name, types in values.items()]


def _tunable(name: str, kind: ColumnType) -> Metric:
    def value(result: Result) -> object:
        found = result.variant.tunables.get(name)
        # Kernels may share a tunable's name with different types; then all are written as text.
        return str(found) if kind == "string" and found is not None else found

    # As an MLflow param a tunable is there anyway; numeric ones as metrics too, as axes of scatter charts.
    return Metric(
        name=f"tunable.{name}",
        type=kind,
        meaning="Value of a tunable",
        value=value,
        mlflow=f"tunable/{name}",
        mlflow_kind="metric",
    )


def _type_of(types: set[type]) -> ColumnType:
    if types == {bool}:
        return "bool"
    if types == {int}:
        return "int64"
    return "double" if types <= {int, float} else "string"


def _instructions(results: Sequence[Result]) -> list[Metric]:
    classes = {
        name: None for result in results if result.compiled for name in result.compiled.facts.instructions
    }
    return [_instruction_class(name) for name in classes]


def _instruction_class(name: str) -> Metric:
    return _count(
        "instructions",
        name,
        f"Instructions of the class {name} in the binary (static count)",
        lambda result: result.compiled.facts.instructions.get(name) if result.compiled else None,
    )


def _counters(results: Sequence[Result]) -> list[Metric]:
    names = {
        name: None
        for result in results
        if result.profiled and result.profiled.counters
        for name in result.profiled.counters.values
    }
    return [_counter(name) for name in names]


def _counter(name: str) -> Metric:
    def value(result: Result) -> object:
        counters = result.profiled.counters if result.profiled else None
        return counters.values.get(name) if counters else None

    return Metric(
        name=f"counter.{name.removesuffix(SUFFIX)}",
        type="double",
        meaning=f"Hardware counter {name}, per call",
        value=value,
        mlflow=f"counter/{name.removesuffix(SUFFIX)}",
    )


def _count(family: str, name: str, meaning: str, value: Callable[[Result], object]) -> Metric:
    return Metric(
        name=f"{family}.{name}", type="int64", meaning=meaning, value=value, mlflow=f"{family}/{name}"
    )


TUNABLES = MetricFamily(
    prefixes=("tunable.",), members=_tunables, documented=(_tunable("<tunable>", "string"),)
)
INSTRUCTIONS = MetricFamily(
    prefixes=("instructions.",), members=_instructions, documented=(_instruction_class("<class>"),)
)
COUNTERS = MetricFamily(prefixes=("counter.",), members=_counters, documented=(_counter("<counter>"),))
