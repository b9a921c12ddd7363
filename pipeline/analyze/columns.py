"""The columns of the table `variants`: name, type, unit, what it says, and where it comes from.

One declaration feeds the schema, the values and the report's glossary, so that they cannot disagree.
Columns named `estimate_…` hold estimates; no other column does.
"""

from collections.abc import Callable
from typing import Literal

from pipeline.analyze.collect import Result
from pipeline.analyze.roofline import estimate_bound, estimate_roofline_seconds
from pipeline.records.compiled import StaticFacts
from pipeline.records.profiled import Profiled
from pipeline.records.record import Record
from pipeline.records.verified import Verified

ColumnType = Literal["string", "bool", "int64", "double"]


class Column(Record, frozen=True, kw_only=True):
    """One column; `value` gives None where the result does not have it."""

    name: str
    type: ColumnType
    meaning: str
    value: Callable[[Result], object]
    unit: str = ""


def _task(name: str, meaning: str, kind: ColumnType = "string") -> Column:
    return Column(name=name, type=kind, meaning=meaning, value=lambda result: getattr(result.task, name))


def _fact(name: str, meaning: str, unit: str, field: str | None = None, kind: ColumnType = "int64") -> Column:
    def value(result: Result) -> object:
        facts: StaticFacts | None = result.compiled.facts if result.compiled else None
        return getattr(facts, field or name) if facts else None

    return Column(name=name, type=kind, meaning=meaning, unit=unit, value=value)


def _verified(name: str, kind: ColumnType, meaning: str, value: Callable[[Verified], object]) -> Column:
    return Column(
        name=name,
        type=kind,
        meaning=meaning,
        value=lambda result: value(result.verified) if result.verified else None,
    )


def _measured(name: str, meaning: str, unit: str, value: Callable[[Profiled], object]) -> Column:
    return Column(
        name=name,
        type="double",
        meaning=meaning,
        unit=unit,
        value=lambda result: value(result.profiled) if result.profiled else None,
    )


def _outcome(stage: str) -> Column:
    def value(result: Result) -> object:
        record = result.records.get(stage)
        if record is None:
            return None
        return str(getattr(record.result, "outcome", "passed"))

    return Column(
        name=f"{stage}_outcome",
        type="string",
        meaning=f"Outcome of {stage}; absent if not reached",
        value=value,
    )


def _seconds(stage: str) -> Column:
    return Column(
        name=f"{stage}_seconds",
        type="double",
        unit="s",
        meaning=f"Wall time of {stage} for the variant, when it was made and not taken from the store",
        value=lambda result: result.records[stage].seconds if stage in result.records else None,
    )


def _folder(stage: str) -> Column:
    return Column(
        name=f"{stage}_folder",
        type="string",
        meaning=f"Store entry of {stage} with its record and files, from the artifacts' root",
        value=lambda result: result.folder(stage),
    )


def configuration(result: Result) -> str:
    """The tunables in one line: `BLOCK=1024 num_warps=4`."""
    return " ".join(f"{name}={value}" for name, value in result.variant.tunables.items())


WHO = (
    _task("task", "Identity of the task"),
    _task("kernel", "Kernel"),
    _task("workload", "Workload"),
    _task("hardware", "Hardware target"),
    _task("kind", "Kind of target: cpu, cuda, hip"),
    Column(
        name="architecture",
        type="string",
        meaning="What it was compiled for",
        value=lambda result: result.architecture,
    ),
    _task("device_present", "Whether the device is on the machine that ran", "bool"),
    _task("optimization", "Optimization: which tunables were free"),
    _task("search", "Search: how variants were proposed"),
    _task("dtype", "Element type of the workload"),
    Column(
        name="dimensions",
        type="string",
        meaning="Dimensions of the kernel",
        value=lambda result: " ".join(f"{name}={size}" for name, size in result.task.dimensions.items()),
    ),
    Column(name="round", type="int64", meaning="Round of the search", value=lambda result: result.round),
    Column(name="variant", type="string", meaning="Identity of the variant", value=lambda result: result.id),
    Column(
        name="implementation",
        type="string",
        meaning="Implementation of the kernel",
        value=lambda result: result.variant.implementation,
    ),
    Column(name="backend", type="string", meaning="Backend", value=lambda result: result.variant.backend),
    Column(name="configuration", type="string", meaning="All tunables in one line", value=configuration),
    Column(
        name="default",
        type="bool",
        meaning="Whether every tunable has its declared default",
        value=lambda result: result.default,
    ),
)

OUTCOME = (
    Column(
        name="stage",
        type="string",
        meaning="Last stage reached; that of the failure",
        value=lambda result: result.stage,
    ),
    Column(
        name="outcome",
        type="string",
        meaning="Outcome of the last stage reached: passed, or the first failure",
        value=lambda result: str(result.outcome),
    ),
    Column(
        name="reason",
        type="string",
        meaning="Why it failed",
        value=lambda result: result.failure.reason if result.failure else None,
    ),
    Column(
        name="log",
        type="string",
        meaning="Log of the failure, from the artifacts' root",
        value=lambda result: result.log,
    ),
    *(_outcome(stage) for stage in ("compile", "verify", "profile")),
    *(_seconds(stage) for stage in ("compile", "verify", "profile")),
    *(_folder(stage) for stage in ("compile", "verify", "profile")),
)

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

VERIFICATION = (
    Column(
        name="verify_where",
        type="string",
        meaning="Where verify ran: on the device, or in the Triton interpreter on reduced shapes",
        value=lambda result: result.verify.where if result.verify else None,
    ),
    _verified(
        "verify_worst_share", "double", "Largest error over the derived bound", lambda ok: ok.worst_share
    ),
    _verified("verify_worst_error", "double", "Largest absolute error", lambda ok: ok.worst_error),
    _verified(
        "verify_weak",
        "string",
        "Trivial answers that would have passed as well; empty if none would",
        lambda ok: " ".join(ok.weak),
    ),
    _verified(
        "verify_differing",
        "int64",
        "Elements that differed between calls on equal inputs, among verify_compared",
        lambda ok: ok.differing,
    ),
    _verified(
        "verify_compared", "int64", "Elements compared between calls on equal inputs", lambda ok: ok.compared
    ),
    Column(
        name="verify_isolation",
        type="string",
        meaning="What confined the candidate's process",
        value=lambda result: ", ".join(result.verify.isolation) if result.verify else None,
    ),
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
        "energy_joules", "Energy per call, where the device reports it", "J", lambda run: run.energy_joules
    ),
)

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
)

COLUMNS = (*WHO, *OUTCOME, *FACTS, *VERIFICATION, *MEASUREMENT, *ESTIMATES)
