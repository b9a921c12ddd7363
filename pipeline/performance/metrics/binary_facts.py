"""Static facts of the binary."""

from collections.abc import Callable

from pipeline.backends.cpp.extensions import NAMES
from pipeline.backends.machine_code.matrix import MatrixUse, matrix_use
from pipeline.performance.metrics.metric import Column, ColumnType
from pipeline.records.compiled import StaticFacts
from pipeline.records.results import Result


def _fact(name: str, meaning: str, unit: str, field: str | None = None, kind: ColumnType = "int64") -> Column:
    def value(result: Result) -> object:
        facts: StaticFacts | None = result.compiled.facts if result.compiled else None
        return getattr(facts, field or name) if facts else None

    return Column(name=name, type=kind, meaning=meaning, unit=unit, value=value)


def _derived(
    name: str,
    meaning: str,
    value: Callable[[StaticFacts], object],
    *,
    unit: str = "",
    kind: ColumnType = "string",
) -> Column:
    return Column(
        name=name,
        type=kind,
        meaning=meaning,
        unit=unit,
        value=lambda result: value(result.compiled.facts) if result.compiled else None,
    )


def use_of_matrix_units(result: Result) -> MatrixUse | None:
    """Whether the matrix instructions meant for the target are there; None where there is none to expect.

    To expect is one where the kernel's operations are matrix products, by its cost formula, and where the
    architecture has a matrix unit for the workload's element type.
    """
    if result.compiled is None or result.architecture is None or result.task.unit != "matrix":
        return None
    return matrix_use(result.architecture, result.task.dtype, result.compiled.facts.matrix)


_BASE = {"sse2", "asimd"}  # every processor of the kind has it, and wider code has no need of it


def unused_extensions(result: Result) -> str | None:
    """Vector extensions of a CPU target that no instruction needs; None where the mix is not known."""
    if result.compiled is None or not result.compiled.facts.extensions:
        return None
    used = result.compiled.facts.extensions
    known = set(NAMES) - _BASE
    return ", ".join(name for name in result.features if name in known and name not in used)


def vector_bits(facts: StaticFacts) -> int | None:
    """Widest vectors of a CPU's code; None where no width is known (other backends, scalable vectors)."""
    widths = [
        int(name.removeprefix("vector_"))
        for name in facts.instructions
        if name.removeprefix("vector_").isdecimal()
    ]
    return max(widths, default=None)


def fma_share(facts: StaticFacts) -> float | None:
    """Fused ones among a CPU's floating-point instructions; None where there are none, or it is not known."""
    arithmetic = facts.instructions.get("float_arithmetic")
    return facts.instructions.get("fma", 0) / arithmetic if arithmetic else None


def counts_in_one_line(counts: dict[str, int]) -> str | None:
    """`HMMA 16`; None where there is nothing to count."""
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or None


FACTS = (
    _fact("code_bytes", "Size of the machine code of the kernel's functions", "B"),
    _fact("registers", "Registers per thread (NVIDIA), vector registers per lane (AMD)", "registers"),
    _fact("scalar_registers", "Scalar registers per wave (AMD)", "registers"),
    _fact("spills", "Bytes per thread that did not fit the registers", "B"),
    _fact("local_memory", "Local memory per thread (AMD: scratch; CPU: largest stack frame)", "B"),
    _fact("barriers", "Hardware barriers that a block reserves (NVIDIA)", "barriers"),
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
    _fact(
        "estimate_resident_blocks",
        "Estimate: blocks that one multiprocessor holds at once",
        "blocks",
        "resident_blocks",
    ),
    _derived(
        "matrix", "Matrix instructions by name (static count)", lambda facts: counts_in_one_line(facts.matrix)
    ),
    Column(
        name="matrix_use",
        type="string",
        meaning="Matrix instructions meant for the architecture: meant, older (slower ones), none; "
        "absent where none is to be expected",
        value=use_of_matrix_units,
    ),
    _derived("vector_bits", "Widest vectors in the code (CPU)", vector_bits, unit="bit", kind="int64"),
    _derived(
        "fma_share",
        "Fused multiply-adds among the floating-point instructions (CPU, static)",
        fma_share,
        unit="share",
        kind="double",
    ),
    _derived(
        "vector_extensions",
        "Instruction-set extensions that vector code needs (CPU, static count)",
        lambda facts: counts_in_one_line(facts.extensions),
    ),
    Column(
        name="vector_extensions_unused",
        type="string",
        meaning="Vector extensions of the target that no instruction needs (CPU)",
        value=unused_extensions,
    ),
)
