"""Rates of a call, the ceilings that they are compared with, and estimated lower bounds of its time."""

import functools
from collections.abc import Callable

from pipeline.performance.bound_error import (
    ceiling_bound,
    declared_bandwidth_share,
    declared_bound,
    geometry_of,
)
from pipeline.performance.metrics.metric import GIGA, MICROSECONDS, ColumnType, Metric, Shown, of_profile
from pipeline.performance.roofline import estimate_bound, estimate_roofline_seconds
from pipeline.performance.time_bound import Bound, Geometry
from pipeline.records.results.collection import Result
from pipeline.records.results.profiled import Ceilings, Profiled


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


CACHES = ("L1", "L2", "L3")


def _level(name: str, run: Profiled) -> float | None:
    levels = run.ceilings.levels if run.ceilings else ()
    return next((level.bandwidth for level in levels if level.name == name), None)


def _rate(amount: float | None, run: Profiled) -> float | None:
    return None if amount is None else amount / run.time.value


def _ceiling(name: str, meaning: str, unit: str, value: Callable[[Ceilings], float | None]) -> Metric:
    """One that was measured in the same job; absent if the measurement was recorded elsewhere."""
    return _measured(name, meaning, unit, lambda run: value(run.ceilings) if run.ceilings else None)


def _measured(
    name: str, meaning: str, unit: str, value: Callable[[Profiled], object], mlflow: str = ""
) -> Metric:
    return Metric(
        name=name,
        type="double",
        unit=unit,
        meaning=meaning,
        value=of_profile(value),
        mlflow=mlflow or name.replace("_", "/", 1),
    )


def _launch_share(run: Profiled) -> float | None:
    launch = run.ceilings.launch_seconds if run.ceilings else None
    return launch / run.time.value if launch else None


RATES_AND_CEILINGS = (
    Metric(
        name="bytes_per_second",
        type="double",
        unit="B/s",
        meaning="Compulsory bytes of a call divided by its median time",
        value=of_profile(lambda run: _rate(run.bytes, run)),
        mlflow="achieved/gigabytes_per_second",
        mlflow_scale=GIGA,
    ),
    Metric(
        name="flops_per_second",
        type="double",
        unit="FLOP/s",
        meaning="Operations of a call, by the kernel's formula, divided by its median time",
        value=of_profile(lambda run: _rate(run.flops, run)),
        mlflow="achieved/gigaflops_per_second",
        mlflow_scale=GIGA,
    ),
    _measured(
        "arithmetic_intensity",
        "Operations of a call per compulsory byte, both by the kernel's formulas",
        "FLOP/byte",
        lambda run: run.flops / run.bytes if run.flops is not None and run.bytes else None,
        "achieved/arithmetic_intensity",
    ),
    Metric(
        name="roofline_share",
        type="double",
        unit="share",
        meaning="Least time that the ceilings measured in the same job allow, divided by the median time",
        value=of_profile(lambda run: run.roofline_share),
        shown=Shown(heading="roofline share", style="share", position=70),
    ),
    Metric(
        name="bound",
        type="string",
        meaning="The nearest measured ceiling: memory, compute, or latency (a call that does nothing)",
        value=of_profile(lambda run: run.bound),
    ),
    Metric(
        name="memory_level",
        type="string",
        meaning="The nearest level of the device's memory that holds the call's compulsory bytes",
        value=of_profile(lambda run: run.ceilings.level if run.ceilings else None),
    ),
    _measured(
        "launch_share",
        "Measured time of a call that does nothing, divided by the median time",
        "share",
        _launch_share,
        "achieved/launch_share",
    ),
    _ceiling(
        "ceiling_copy_bandwidth",
        "Measured: copy of a large array",
        "B/s",
        lambda found: found.copy_bandwidth,
    ),
    _ceiling(
        "ceiling_cache_bandwidth",
        "Measured: streams of the problem's size and mix of reads and writes",
        "B/s",
        lambda found: found.cache_bandwidth,
    ),
    *(
        _measured(
            f"ceiling_{name.lower()}_bandwidth",
            f"Measured: copy whose data lie in the {name} caches",
            "B/s",
            functools.partial(_level, name),
        )
        for name in CACHES
    ),
    _ceiling(
        "ceiling_read_bandwidth",
        "Measured: reading a large array",
        "B/s",
        lambda found: found.read_bandwidth,
    ),
    _ceiling(
        "ceiling_triad_bandwidth",
        "Measured: triad of large arrays, three arrays counted",
        "B/s",
        lambda found: found.triad_bandwidth,
    ),
    _ceiling(
        "ceiling_matrix_flops",
        "Measured: the vendor library's matrix product in the workload's dtype",
        "FLOP/s",
        lambda found: found.matrix_flops,
    ),
    _ceiling(
        "ceiling_vector_flops",
        "Measured: independent fused multiply-adds in float32, or in the workload's dtype where that counts",
        "FLOP/s",
        lambda found: found.vector_flops,
    ),
    _ceiling(
        "ceiling_launch_seconds",
        "Measured: a call that does nothing, back to back",
        "s",
        lambda found: found.launch_seconds,
    ),
)
