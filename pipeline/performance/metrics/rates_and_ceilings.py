"""What profile measured beside the time: rates, ceilings."""

import functools
from collections.abc import Callable

from pipeline.performance.metrics.metric import Column, measured
from pipeline.records.ceilings import Ceilings
from pipeline.records.profiled import Profiled

CACHES = ("L1", "L2", "L3")


def _level(name: str, run: Profiled) -> float | None:
    levels = run.ceilings.levels if run.ceilings else ()
    return next((level.bandwidth for level in levels if level.name == name), None)


def _rate(amount: float | None, run: Profiled) -> float | None:
    return None if amount is None else amount / run.timing.median.value


def _ceiling(name: str, meaning: str, unit: str, value: Callable[[Ceilings], float | None]) -> Column:
    """One that was measured beside the variant; absent where the measurement was recorded elsewhere."""
    return measured(name, meaning, unit, lambda run: value(run.ceilings) if run.ceilings else None)


def _launch_share(run: Profiled) -> float | None:
    launch = run.ceilings.launch_seconds if run.ceilings else None
    return launch / run.timing.median.value if launch else None


MEASUREMENT = (
    measured(
        "bytes_per_second",
        "Compulsory bytes of a call over its median time",
        "B/s",
        lambda run: _rate(run.bytes, run),
    ),
    measured(
        "flops_per_second",
        "Operations of a call, by the kernel's formula, over its median time",
        "FLOP/s",
        lambda run: _rate(run.flops, run),
    ),
    measured(
        "arithmetic_intensity",
        "Operations of a call per compulsory byte, both by the kernel's formulas",
        "FLOP/byte",
        lambda run: run.flops / run.bytes if run.flops is not None and run.bytes else None,
    ),
    measured(
        "roofline_share",
        "Least time that the ceilings measured in the same job allow, over the median time",
        "share",
        lambda run: run.roofline_share,
    ),
    Column(
        name="bound",
        type="string",
        meaning="The nearest measured ceiling: memory, compute, or latency (a call that does nothing)",
        value=lambda result: result.profiled.bound if result.profiled else None,
    ),
    Column(
        name="memory_level",
        type="string",
        meaning="The nearest level of the device's memory that holds the call's compulsory bytes",
        value=lambda result: (
            result.profiled.ceilings.level if result.profiled and result.profiled.ceilings else None
        ),
    ),
    measured(
        "launch_share",
        "Measured time of a call that does nothing over the median time",
        "share",
        _launch_share,
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
        measured(
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
