"""Static facts of the binary: registers, memory, instructions, occupancy."""

import operator
from collections.abc import Callable

from pipeline.backends.cpp.instruction_extensions import NAMES
from pipeline.backends.machine_code.matrix_instructions import MatrixUse, matrix_use
from pipeline.performance.metrics.metric import Metric, Shown
from pipeline.records.results.collection import Result
from pipeline.records.results.compiled import StaticFacts


def _of_facts(value: Callable[[StaticFacts], object]) -> Callable[[Result], object]:
    return lambda result: value(result.compiled.facts) if result.compiled else None


def _fact(name: str, meaning: str, unit: str, shown: Shown | None = None) -> Metric:
    return Metric(
        name=name,
        type="int64",
        unit=unit,
        meaning=meaning,
        value=_of_facts(operator.attrgetter(name)),
        mlflow=f"static/{name}",
        shown=shown,
    )


def _count(heading: str, position: int) -> Shown:
    return Shown(heading=heading, style="count", position=position)


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


BINARY_FACTS = (
    _fact("code_bytes", "Size of the machine code of the kernel's functions", "B", _count("code bytes", 140)),
    _fact(
        "registers",
        "Registers per thread (NVIDIA), vector registers per lane (AMD)",
        "registers",
        _count("registers", 90),
    ),
    _fact("scalar_registers", "Scalar registers per wave (AMD)", "registers"),
    _fact("spills", "Bytes per thread that did not fit the registers", "B", _count("spills", 100)),
    _fact("local_memory", "Local memory per thread (AMD: scratch; CPU: largest stack frame)", "B"),
    _fact("barriers", "Hardware barriers that a block reserves (NVIDIA)", "barriers"),
    _fact("shared_memory", "Shared memory per block, static and dynamic", "B", _count("shared memory", 110)),
    _fact("threads_per_block", "Threads per block", "threads"),
    Metric(
        name="estimate_occupancy",
        type="double",
        unit="share",
        meaning="Estimate: resident warps divided by the most that one multiprocessor holds",
        value=_of_facts(lambda facts: facts.occupancy_bound),
        mlflow="estimate/occupancy",
        shown=Shown(heading="occupancy (estimate)", style="estimate", position=120),
    ),
    Metric(
        name="estimate_occupancy_limiter",
        type="string",
        meaning="Estimate: the resource that limits occupancy",
        value=_of_facts(lambda facts: facts.occupancy_limiter),
        mlflow="estimate/occupancy_limiter",
    ),
    Metric(
        name="estimate_resident_blocks",
        type="int64",
        unit="blocks",
        meaning="Estimate: blocks that one multiprocessor holds at once",
        value=_of_facts(lambda facts: facts.resident_blocks),
        mlflow="estimate/resident_blocks",
    ),
    Metric(
        name="matrix",
        type="string",
        meaning="Matrix instructions by name (static count)",
        value=_of_facts(lambda facts: counts_in_one_line(facts.matrix)),
        mlflow="static/matrix",
    ),
    Metric(
        name="matrix_use",
        type="string",
        meaning="Matrix instructions of the architecture: meant (its own), older (slower ones), none; "
        "absent if none are expected",
        value=use_of_matrix_units,
        mlflow="static/matrix_use",
    ),
    Metric(
        name="vector_bits",
        type="int64",
        unit="bit",
        meaning="Widest vectors in the code (CPU)",
        value=_of_facts(vector_bits),
        mlflow="static/vector_bits",
    ),
    Metric(
        name="fma_share",
        type="double",
        unit="share",
        meaning="Fused multiply-adds among the floating-point instructions (CPU, static)",
        value=_of_facts(fma_share),
        mlflow="static/fma_share",
    ),
    Metric(
        name="vector_extensions",
        type="string",
        meaning="Instruction-set extensions that vector code needs (CPU, static count)",
        value=_of_facts(lambda facts: counts_in_one_line(facts.extensions)),
        mlflow="static/vector_extensions",
    ),
    Metric(
        name="vector_extensions_unused",
        type="string",
        meaning="Vector extensions of the target that no instruction needs (CPU)",
        value=unused_extensions,
        mlflow="static/vector_extensions_unused",
    ),
)
