"""Static facts of the binary."""

from pipeline.analyze.collect import Result
from pipeline.analyze.columns.column import Column, ColumnType
from pipeline.records.compiled import StaticFacts


def _fact(name: str, meaning: str, unit: str, field: str | None = None, kind: ColumnType = "int64") -> Column:
    def value(result: Result) -> object:
        facts: StaticFacts | None = result.compiled.facts if result.compiled else None
        return getattr(facts, field or name) if facts else None

    return Column(name=name, type=kind, meaning=meaning, unit=unit, value=value)


FACTS = (
    _fact("code_bytes", "Size of the machine code of the kernel's functions", "B"),
    _fact("registers", "Registers per thread (NVIDIA), vector registers per lane (AMD)", "registers"),
    _fact("scalar_registers", "Scalar registers per wave (AMD)", "registers"),
    _fact("spills", "Bytes per thread that did not fit the registers", "B"),
    _fact("shared_memory", "Shared memory per block, static and dynamic", "B"),
    _fact("threads_per_block", "Threads per block", "threads"),
    _fact(
        "estimate_occupancy",
        "Estimate: resident warps over the most that one multiprocessor holds",
        "share",
        "occupancy_bound",
        "double",
    ),
    _fact(
        "estimate_occupancy_limiter", "Estimate: what sets the occupancy", "", "occupancy_limiter", "string"
    ),
)
