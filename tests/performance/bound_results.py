"""Results with launches and measurements of known size, for tests of bounds."""

from typing import Any

from pipeline.records.configuration.hardware import Quantity
from pipeline.records.planning.specs import TaskRow
from pipeline.records.results.collection import Result
from pipeline.records.results.compiled import Compiled, CompileRecord, StaticFacts
from pipeline.records.results.profiled import Ceilings, ConfidenceInterval, Profiled, ProfileRecord, Timing
from pipeline.records.results.variant import Variant
from tests.report.sample_run import PROVENANCE

GPU_LIMITS = {
    "warp_size": 32,
    "sm_count": 132,
    "threads_per_sm": 2048,
    "blocks_per_sm": 32,
    "shared_memory_per_sm": 233472,
    "l2_cache": 62914560,
}
GPU_PEAKS = {
    "dram_bandwidth": Quantity(value=4.0, unit="TB/s", source="test"),
    "vector_float32": Quantity(value=50.0, unit="TFLOP/s", source="test"),
    "matrix_float16": Quantity(value=1000.0, unit="TFLOP/s", source="test"),
}
LATENCY = {"dram_latency": Quantity(value=2.5e-7, unit="s", source="test")}
CEILINGS = Ceilings(copy_bandwidth=2e10, cache_bandwidth=5e10, matrix_flops=4e11, vector_flops=2e11)


def task(**changes: Any) -> TaskRow:
    """A product in float16 on a GPU of 132 multiprocessors, 1 TFLOP and 400 MB a call."""
    row: dict[str, Any] = {
        "task": "t", "kernel": "matmul", "workload": "w", "hardware": "h200", "kind": "cuda",
        "device_present": False, "optimization": "full", "search": "grid", "rounds": 1, "dtype": "float16",
        "dimensions": {"M": 1}, "flops": 1e12,
        "bytes": 4e8, "read": 2e8, "unit": "matrix", "peaks": GPU_PEAKS,
        "limits": GPU_LIMITS, "generate": "g", "compile": "c", "verify": "v", "profile": "p",
    }  # fmt: skip
    return TaskRow(**row | changes)


def cpu_task(**changes: Any) -> TaskRow:
    """A row-wise kernel on a processor of 512-bit vectors: 2 GFLOP and 0.1 GB a call."""
    return task(
        **{
            "hardware": "cpu", "kind": "cpu", "device_present": True, "unit": "vector", "dtype": "float32",
            "flops": 2e9, "bytes": 1e8, "peaks": {}, "limits": {"vector_bits": 512, "l2_cache": 1 << 20},
        }
        | changes
    )  # fmt: skip


def facts(**changes: Any) -> StaticFacts:
    """A block of 128 threads of which a multiprocessor holds four."""
    found: dict[str, Any] = {
        "code_bytes": 4096, "registers": 100, "spills": 0, "shared_memory": 1024, "threads_per_block": 128,
        "occupancy_bound": 0.25, "occupancy_limiter": "registers", "resident_blocks": 4,
        "instructions": {"matrix": 16, "load_global_128": 4, "store_global_128": 2},
    }  # fmt: skip
    return StaticFacts(**found | changes)


def profiled(row: TaskRow, seconds: float, **changes: Any) -> Profiled:
    """A measurement under the ceilings above."""
    interval = ConfidenceInterval(value=seconds, low=seconds, high=seconds, confidence=0.95)
    timing = Timing(
        samples=(seconds,), median=interval, calls_per_batch=1, setup_seconds=0.0, first_call_seconds=seconds
    )
    memory, compute = row.bytes / CEILINGS.cache_bandwidth, row.flops / CEILINGS.vector_flops
    found: dict[str, Any] = {
        "timing": timing, "comparisons": (), "ceilings": CEILINGS, "flops": row.flops, "bytes": row.bytes,
        "roofline_share": max(memory, compute) / seconds, "device": {},
        "bound": "memory" if memory >= compute else "compute",
    }  # fmt: skip
    return Profiled(**found | changes)


def result(
    row: TaskRow | None = None,
    found: StaticFacts | None = None,
    grid: tuple[int, ...] | None = (528,),
    measured: Profiled | None = None,
    functions: tuple[str, ...] = ("kernel",),
) -> Result:
    """One variant."""
    row = row or task()
    variant = Variant(
        kernel=row.kernel, implementation="triton", backend="triton", source_digest="0", attributes={},
        tunables={"BLOCK_M": 64, "num_warps": 4, "num_stages": 3},
    )  # fmt: skip
    compiled = Compiled(
        artifact="k", artifact_digest="0", functions=functions, grid=grid, facts=found or facts(), files=()
    )
    same = {"variant": variant, "entry": "0", "seconds": 0.1, "provenance": PROVENANCE}
    return Result(
        task=row,
        round=0,
        variant=variant,
        id=variant.id,
        default=None,
        architecture="sm_90" if row.kind == "cuda" else None,
        compile=CompileRecord(result=compiled, **same),
        profile=ProfileRecord(result=measured, **same) if measured else None,
    )
