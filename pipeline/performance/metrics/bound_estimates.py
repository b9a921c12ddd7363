"""Estimates, each so named: no column holds both an estimate and a measurement."""

from collections.abc import Callable

from pipeline.performance.bound.geometry import Geometry
from pipeline.performance.bound.least import Bound
from pipeline.performance.bound.of_result import (
    ceiling_bound,
    declared_bandwidth_share,
    declared_bound,
    geometry_of,
)
from pipeline.performance.metrics.metric import Column, ColumnType
from pipeline.performance.roofline import estimate_bound, estimate_roofline_seconds
from pipeline.records.results import Result


def _bound(
    name: str, meaning: str, of: Callable[[Result], Bound | None], value: Callable[[Bound], object]
) -> Column:
    def find(result: Result) -> object:
        found = of(result)
        return value(found) if found else None

    seconds = name.endswith("_seconds")
    return Column(
        name=name,
        type="double" if seconds else "string",
        unit="s" if seconds else "",
        meaning=f"Estimate: {meaning}",
        value=find,
    )


def _launch(
    name: str, kind: ColumnType, unit: str, meaning: str, value: Callable[[Geometry], object]
) -> Column:
    def find(result: Result) -> object:
        found = geometry_of(result)
        return value(found) if found else None

    return Column(name=name, type=kind, unit=unit, meaning=f"Estimate: {meaning}", value=find)


ESTIMATES = (
    Column(
        name="estimate_roofline_seconds",
        type="double",
        unit="s",
        meaning="Estimate: least time of a call that the declared peaks of the target allow",
        value=lambda result: estimate_roofline_seconds(result.task),
    ),
    Column(
        name="estimate_bound",
        type="string",
        meaning="Estimate: which declared peak sets it, memory or compute",
        value=lambda result: estimate_bound(result.task),
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
        "blocks over the places of all waves",
        lambda launch: launch.wave_efficiency,
    ),
    _launch(
        "estimate_balance",
        "double",
        "share",
        "blocks of the mean multiprocessor over those of the busiest one",
        lambda launch: launch.balance,
    ),
    Column(
        name="estimate_bandwidth_share",
        type="double",
        unit="share",
        meaning="Estimate: share of the declared bandwidth that the loads in flight sustain (Little's law)",
        value=declared_bandwidth_share,
    ),
)
