"""Estimates, each named `estimate_…`: no metric mixes an estimate with a measurement."""

from collections.abc import Callable

from pipeline.performance.bound.geometry import Geometry
from pipeline.performance.bound.least import Bound
from pipeline.performance.bound.of_result import (
    ceiling_bound,
    declared_bandwidth_share,
    declared_bound,
    geometry_of,
)
from pipeline.performance.metrics.metric import MICROSECONDS, ColumnType, Metric
from pipeline.performance.roofline import estimate_bound, estimate_roofline_seconds
from pipeline.records.results.collection import Result


def _bound(
    name: str, meaning: str, of: Callable[[Result], Bound | None], value: Callable[[Bound], object]
) -> Metric:
    def find(result: Result) -> object:
        found = of(result)
        return value(found) if found else None

    return _estimate(name, "double" if name.endswith("_seconds") else "string", "", meaning, find)


def _launch(
    name: str, kind: ColumnType, unit: str, meaning: str, value: Callable[[Geometry], object]
) -> Metric:
    def find(result: Result) -> object:
        found = geometry_of(result)
        return value(found) if found else None

    return _estimate(name, kind, unit, meaning, find)


def _estimate(
    name: str, kind: ColumnType, unit: str, meaning: str, value: Callable[[Result], object]
) -> Metric:
    seconds = name.endswith("_seconds")
    short = name.removeprefix("estimate_")
    return Metric(
        name=name,
        type=kind,
        unit="s" if seconds else unit,
        meaning=f"Estimate: {meaning}",
        value=value,
        mlflow=f"estimate/{short.removesuffix('_seconds')}_us" if seconds else f"estimate/{short}",
        mlflow_scale=MICROSECONDS if seconds else 1.0,
    )


BOUND_ESTIMATES = (
    _estimate(
        "estimate_roofline_seconds",
        "double",
        "s",
        "least time of a call that the declared peaks of the target allow",
        lambda result: estimate_roofline_seconds(result.task),
    ),
    _estimate(
        "estimate_bound",
        "string",
        "",
        "which declared peak sets it, memory or compute",
        lambda result: estimate_bound(result.task),
    ),
    _bound(
        "estimate_least_seconds",
        "the same for this variant's launch: even blocks, full warps, loads in flight",
        declared_bound,
        lambda found: found.seconds,
    ),
    _bound(
        "estimate_least_term",
        "which term sets it: memory, compute, spread (of blocks and lanes) or latency",
        declared_bound,
        lambda found: found.longest.name,
    ),
    _bound(
        "estimate_ceiling_seconds",
        "least time that the ceilings measured in the same job allow this variant",
        ceiling_bound,
        lambda found: found.seconds,
    ),
    _bound(
        "estimate_ceiling_term",
        "which term sets it: memory, compute or spread",
        ceiling_bound,
        lambda found: found.longest.name,
    ),
    _launch("estimate_blocks", "int64", "blocks", "blocks of the launch", lambda launch: launch.blocks),
    _launch(
        "estimate_waves", "int64", "waves", "how often the device is filled", lambda launch: launch.waves
    ),
    _launch(
        "estimate_wave_efficiency",
        "double",
        "share",
        "blocks divided by the slots of all waves",
        lambda launch: launch.wave_efficiency,
    ),
    _launch(
        "estimate_balance",
        "double",
        "share",
        "blocks of the mean multiprocessor divided by those of the busiest one",
        lambda launch: launch.balance,
    ),
    _estimate(
        "estimate_bandwidth_share",
        "double",
        "share",
        "share of the declared bandwidth that the loads in flight sustain (Little's law)",
        declared_bandwidth_share,
    ),
)
