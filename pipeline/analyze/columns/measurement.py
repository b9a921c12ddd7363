"""What profile measured beside the time: rates, ceilings."""

import functools

from pipeline.analyze.columns.column import Column, measured
from pipeline.records.profiled import Profiled

CACHES = ("L1", "L2", "L3")


def _level(name: str, run: Profiled) -> float | None:
    return next((level.bandwidth for level in run.ceilings.levels if level.name == name), None)


MEASUREMENT = (
    measured(
        "bytes_per_second",
        "Compulsory bytes of a call over its median time",
        "B/s",
        lambda run: run.bytes / run.timing.median.value,
    ),
    measured(
        "flops_per_second",
        "Operations of a call, by the kernel's formula, over its median time",
        "FLOP/s",
        lambda run: run.flops / run.timing.median.value,
    ),
    measured(
        "arithmetic_intensity",
        "Operations of a call per compulsory byte, both by the kernel's formulas",
        "FLOP/byte",
        lambda run: run.flops / run.bytes if run.bytes else None,
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
        value=lambda result: result.profiled.ceilings.level if result.profiled else None,
    ),
    measured(
        "launch_share",
        "Measured time of a call that does nothing over the median time",
        "share",
        lambda run: (
            run.ceilings.launch_seconds / run.timing.median.value if run.ceilings.launch_seconds else None
        ),
    ),
    measured(
        "ceiling_copy_bandwidth",
        "Measured: copy of a large array",
        "B/s",
        lambda run: run.ceilings.copy_bandwidth,
    ),
    measured(
        "ceiling_cache_bandwidth",
        "Measured: streams of the problem's size and mix of reads and writes",
        "B/s",
        lambda run: run.ceilings.cache_bandwidth,
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
    measured(
        "ceiling_read_bandwidth",
        "Measured: reading a large array",
        "B/s",
        lambda run: run.ceilings.read_bandwidth,
    ),
    measured(
        "ceiling_triad_bandwidth",
        "Measured: triad of large arrays, three arrays counted",
        "B/s",
        lambda run: run.ceilings.triad_bandwidth,
    ),
    measured(
        "ceiling_matrix_flops",
        "Measured: the vendor library's matrix product in the workload's dtype",
        "FLOP/s",
        lambda run: run.ceilings.matrix_flops,
    ),
    measured(
        "ceiling_vector_flops",
        "Measured: independent fused multiply-adds in float32, or in the workload's dtype where that counts",
        "FLOP/s",
        lambda run: run.ceilings.vector_flops,
    ),
    measured(
        "ceiling_launch_seconds",
        "Measured: a call that does nothing, back to back",
        "s",
        lambda run: run.ceilings.launch_seconds,
    ),
)
