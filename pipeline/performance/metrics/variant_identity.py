"""Which variant of which task: the first columns."""

from pipeline.performance.metrics.metric import Column, ColumnType
from pipeline.records.results import Result


def _task(name: str, meaning: str, kind: ColumnType = "string") -> Column:
    return Column(name=name, type=kind, meaning=meaning, value=lambda result: getattr(result.task, name))


def configuration(result: Result) -> str:
    """The tunables in one line: `BLOCK=1024 num_warps=4`."""
    return " ".join(f"{name}={value}" for name, value in result.variant.tunables.items())


def author(result: Result) -> str | None:
    """Who wrote the source, by what: `candidates: fast.cpp`; None for the declared one."""
    return f"{result.source.author.writer}: {result.source.author.name}" if result.source else None


WHO = (
    _task("task", "Identity of the task"),
    _task("kernel", "Kernel"),
    _task("workload", "Workload"),
    _task("hardware", "Hardware target"),
    _task("kind", "Kind of target: cpu, cuda, hip, recorded"),
    Column(
        name="architecture",
        type="string",
        meaning="What it was compiled for",
        value=lambda result: result.architecture,
    ),
    _task("device_present", "Whether the device is on the machine that ran", "bool"),
    Column(
        name="recorded",
        type="string",
        meaning="Device and file of the recorded measurements; empty where it was measured by this pipeline",
        value=lambda result: result.task.recorded,
    ),
    Column(
        name="origin",
        type="string",
        meaning="The other machine that made the result, and its bundle; empty where this checkout made it",
        value=lambda result: result.origin.line if result.origin else None,
    ),
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
    Column(
        name="written_by",
        type="string",
        meaning="Strategy and author of a source that a search wrote; empty for the declared one",
        value=author,
    ),
    Column(
        name="called_for_by",
        type="string",
        meaning="Finding of its parent's diagnosis that called for a rewritten source; `nothing`: none did",
        value=lambda result: result.source.author.details.get("called_for_by") if result.source else None,
    ),
    Column(
        name="parents",
        type="string",
        meaning="Variants that a written source was made from",
        value=lambda result: " ".join(result.source.parents) if result.source else None,
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
