"""Which variant a row is about: task, implementation, source, and what a language model used to write it."""

from collections.abc import Callable

from pipeline.performance.metrics.metric import ColumnType, Metric, Shown
from pipeline.records.results.collection import Result
from pipeline.records.search.model_attempt import Attempt


def _task(name: str, meaning: str, kind: ColumnType = "string", position: int | None = None) -> Metric:
    return Metric(
        name=name,
        type=kind,
        meaning=meaning,
        value=lambda result: getattr(result.task, name),
        shown=None if position is None else Shown(heading=name, style="text", position=position),
    )


def configuration(result: Result) -> str:
    """The tunables in one line: `BLOCK=1024 num_warps=4`."""
    return " ".join(f"{name}={value}" for name, value in result.variant.tunables.items())


def author(result: Result) -> str | None:
    """Strategy and name of the source's author: `candidates: fast.cpp`; None for the declared source."""
    return f"{result.source.author.writer}: {result.source.author.name}" if result.source else None


VARIANT_IDENTITY = (
    _task("task", "Identity of the task"),
    _task("kernel", "Kernel", position=10),
    _task("workload", "Workload", position=20),
    _task("hardware", "Hardware target", position=30),
    _task("kind", "Kind of target: cpu, cuda, hip, recorded"),
    Metric(
        name="architecture",
        type="string",
        meaning="Architecture that it was compiled for",
        value=lambda result: result.architecture,
    ),
    _task("device_present", "Whether the machine of the run has the device", "bool"),
    Metric(
        name="recorded",
        type="string",
        meaning="Device and file of the recorded measurements; empty if this pipeline measured",
        value=lambda result: result.task.recorded,
    ),
    Metric(
        name="origin",
        type="string",
        meaning="The machine that produced the result, and its bundle; empty for results of this checkout",
        value=lambda result: result.origin.line if result.origin else None,
    ),
    _task("optimization", "Optimization: which tunables were free"),
    _task("search", "Search: how variants were proposed"),
    _task("dtype", "Element type of the workload"),
    Metric(
        name="dimensions",
        type="string",
        meaning="Dimensions of the kernel",
        value=lambda result: " ".join(f"{name}={size}" for name, size in result.task.dimensions.items()),
    ),
    Metric(
        name="round",
        type="int64",
        meaning="Round of the search",
        value=lambda result: result.round,
        mlflow="search/round",
    ),
    Metric(name="variant", type="string", meaning="Identity of the variant", value=lambda result: result.id),
    Metric(
        name="implementation",
        type="string",
        meaning="Implementation of the kernel",
        value=lambda result: result.variant.implementation,
    ),
    Metric(
        name="written_by",
        type="string",
        meaning="Strategy and author of a source that a search wrote; empty for the declared source",
        value=author,
    ),
    Metric(
        name="called_for_by",
        type="string",
        meaning="Finding of the parent's diagnosis that a rewritten source answers; `nothing`: no finding",
        value=lambda result: result.source.author.details.get("called_for_by") if result.source else None,
        mlflow="author/called_for_by",
    ),
    Metric(
        name="parents",
        type="string",
        meaning="Variants that a written source was derived from",
        value=lambda result: " ".join(result.source.parents) if result.source else None,
    ),
    Metric(name="backend", type="string", meaning="Backend", value=lambda result: result.variant.backend),
    Metric(
        name="configuration",
        type="string",
        meaning="All tunables in one line",
        value=configuration,
        shown=Shown(heading="tunables", style="code", position=40),
    ),
    Metric(
        name="default",
        type="bool",
        meaning="Whether every tunable has its declared default",
        value=lambda result: result.default,
    ),
)


def _of_attempt(
    name: str, meaning: str, kind: ColumnType, value: Callable[[Attempt], object], unit: str = ""
) -> Metric:
    def found(result: Result) -> object:
        return value(result.attempt) if result.attempt is not None else None

    mlflow = name.replace("_", "/", 1)
    return Metric(name=name, type=kind, meaning=meaning, value=found, unit=unit, mlflow=mlflow)


MODEL_USAGE = (
    _of_attempt(
        "agent_change", "The one change that the language model was asked for", "string", lambda a: a.change
    ),
    _of_attempt("agent_model", "Model that wrote it, as the endpoint names it", "string", lambda a: a.model),
    _of_attempt("agent_template", "Template of the prompt, with its version", "string", lambda a: a.prompt),
    _of_attempt(
        "agent_prompt_tokens", "Tokens of all prompts of the attempt, as the endpoint counts", "int64",
        lambda a: a.prompt_tokens,
    ),
    _of_attempt(
        "agent_completion_tokens", "Tokens of all its answers", "int64", lambda a: a.completion_tokens
    ),
    _of_attempt(
        "agent_cost", "Cost at the price that the search states", "double", lambda a: a.cost, "currency"
    ),
    _of_attempt("agent_currency", "Currency of the cost", "string", lambda a: a.currency),
    _of_attempt("agent_seconds", "Time that the endpoint took to answer", "double", lambda a: a.seconds, "s"),
)  # fmt: skip
