"""What a source cost that a language model wrote: tokens, money, seconds of the attempt that produced it."""

from collections.abc import Callable

from pipeline.performance.metrics.metric import ColumnType, Metric
from pipeline.records.results.collection import Result
from pipeline.records.search.model_attempt import Attempt


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
