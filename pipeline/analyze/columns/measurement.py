"""What profile measured."""

from collections.abc import Callable

from pipeline.analyze.columns.column import Column
from pipeline.records.profiled import Profiled


def _measured(name: str, meaning: str, unit: str, value: Callable[[Profiled], object]) -> Column:
    return Column(
        name=name,
        type="double",
        meaning=meaning,
        unit=unit,
        value=lambda result: value(result.profiled) if result.profiled else None,
    )


MEASUREMENT = (
    _measured("median_seconds", "Median time of one call", "s", lambda run: run.timing.median.value),
    _measured(
        "median_seconds_low", "Lower end of its bootstrap interval", "s", lambda run: run.timing.median.low
    ),
    _measured(
        "median_seconds_high", "Upper end of its bootstrap interval", "s", lambda run: run.timing.median.high
    ),
    _measured("confidence", "Level of the intervals", "share", lambda run: run.timing.median.confidence),
    _measured(
        "setup_seconds", "Load and allocate, before the first call", "s", lambda run: run.timing.setup_seconds
    ),
    _measured("first_call_seconds", "First call", "s", lambda run: run.timing.first_call_seconds),
    _measured(
        "bytes_per_second",
        "Compulsory bytes of a call over its median time",
        "B/s",
        lambda run: run.bytes / run.timing.median.value,
    ),
    _measured(
        "flops_per_second",
        "Operations of a call, by the kernel's formula, over its median time",
        "FLOP/s",
        lambda run: run.flops / run.timing.median.value,
    ),
    _measured(
        "roofline_share",
        "Least time that the ceilings measured in the same job allow, over the median time",
        "share",
        lambda run: run.roofline_share,
    ),
    Column(
        name="bound",
        type="string",
        meaning="Which measured ceiling is the nearer one: memory or compute",
        value=lambda result: result.profiled.bound if result.profiled else None,
    ),
    _measured(
        "ceiling_copy_bandwidth",
        "Measured: copy of a large array",
        "B/s",
        lambda run: run.ceilings.copy_bandwidth,
    ),
    _measured(
        "ceiling_cache_bandwidth",
        "Measured: copy of an array of the problem's size",
        "B/s",
        lambda run: run.ceilings.cache_bandwidth,
    ),
    _measured(
        "ceiling_matrix_flops",
        "Measured: the vendor library's matrix product in the workload's dtype",
        "FLOP/s",
        lambda run: run.ceilings.matrix_flops,
    ),
    _measured(
        "ceiling_vector_flops",
        "Measured: independent fused multiply-adds in float32",
        "FLOP/s",
        lambda run: run.ceilings.vector_flops,
    ),
    _measured(
        "energy_joules",
        "Energy per call, where the device reports it",
        "J",
        lambda run: run.energy.joules if run.energy else None,
    ),
)
