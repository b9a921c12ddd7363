"""What profile measured beside the time: rates, ceilings, energy."""

from pipeline.analyze.columns.column import Column, measured

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
    measured(
        "ceiling_copy_bandwidth",
        "Measured: copy of a large array",
        "B/s",
        lambda run: run.ceilings.copy_bandwidth,
    ),
    measured(
        "ceiling_cache_bandwidth",
        "Measured: copy of an array of the problem's size",
        "B/s",
        lambda run: run.ceilings.cache_bandwidth,
    ),
    measured(
        "ceiling_matrix_flops",
        "Measured: the vendor library's matrix product in the workload's dtype",
        "FLOP/s",
        lambda run: run.ceilings.matrix_flops,
    ),
    measured(
        "ceiling_vector_flops",
        "Measured: independent fused multiply-adds in float32",
        "FLOP/s",
        lambda run: run.ceilings.vector_flops,
    ),
)
