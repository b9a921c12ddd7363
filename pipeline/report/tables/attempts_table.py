"""Attempts of language models: what generate recorded in; the table `attempts` and the use per kernel out."""

import collections
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pipeline.performance.metrics import ColumnType
from pipeline.records.planning.specs import TaskRow
from pipeline.records.results.aggregated import AgentUse
from pipeline.records.results.collection import Collected
from pipeline.records.search.model_attempt import Attempt, total
from pipeline.report.tables.variants_table import row_table

if TYPE_CHECKING:
    import pyarrow as pa

ATTEMPTS: dict[str, ColumnType] = {
    "task": "string",
    "kernel": "string",
    "workload": "string",
    "hardware": "string",
    "round": "int64",
    "attempt": "int64",
    "outcome": "string",
    "reason": "string",
    "parent": "string",
    "variant": "string",
    "change": "string",
    "model": "string",
    "template": "string",
    "requests": "int64",
    "tries": "int64",
    "prompt_tokens": "int64",
    "completion_tokens": "int64",
    "cost": "double",
    "currency": "string",
    "seconds": "double",
    "answers": "string",
}


def attempts_table(collected: Collected) -> "pa.Table":
    """One row per attempt, including those without a source; unknown values are null."""
    return row_table(
        ATTEMPTS, [_row(task, number, attempt) for task, number, attempt in _attempts(collected)]
    )


def agent_uses(collected: Collected) -> tuple[AgentUse, ...]:
    """Tokens, cost and time per kernel; empty where no language model was asked."""
    by_kernel: dict[str, list[Attempt]] = collections.defaultdict(list)
    for task, _, attempt in _attempts(collected):
        by_kernel[task.kernel].append(attempt)
    return tuple(_use(kernel, attempts) for kernel, attempts in by_kernel.items())


def together(uses: Iterable[AgentUse]) -> tuple[AgentUse, ...]:
    """The use per kernel of several parts of an experiment."""
    by_kernel: dict[str, list[AgentUse]] = collections.defaultdict(list)
    for use in uses:
        by_kernel[use.kernel].append(use)
    return tuple(_sum(kernel, found) for kernel, found in by_kernel.items())


def _sum(kernel: str, uses: list[AgentUse]) -> AgentUse:
    # Every answer took its time; where there was none, there is nothing to be unknown either.
    answered = [use for use in uses if use.seconds is not None]
    return AgentUse(
        kernel=kernel,
        attempts=sum(use.attempts for use in uses),
        sources=sum(use.sources for use in uses),
        requests=sum(use.requests for use in uses),
        prompt_tokens=total(use.prompt_tokens for use in answered),
        completion_tokens=total(use.completion_tokens for use in answered),
        cost=total(use.cost for use in answered),
        currency=next((use.currency for use in answered if use.currency), None),
        seconds=total(use.seconds for use in answered),
    )


def _use(kernel: str, attempts: list[Attempt]) -> AgentUse:
    answers = [asked for attempt in attempts for asked in attempt.answered]
    return AgentUse(
        kernel=kernel,
        attempts=len(attempts),
        sources=sum(attempt.source is not None for attempt in attempts),
        requests=sum(len(attempt.asked) for attempt in attempts),
        prompt_tokens=total(asked.prompt_tokens for asked in answers),
        completion_tokens=total(asked.completion_tokens for asked in answers),
        cost=total(asked.cost for asked in answers),
        currency=next((asked.currency for asked in answers if asked.currency), None),
        seconds=total(asked.seconds for asked in answers),
    )


def _attempts(collected: Collected) -> list[tuple[TaskRow, int, Attempt]]:
    seen: set[str] = set()
    found = []
    for task, made in collected.generated:
        # Tasks that differ only in how they are judged share their generate.
        key = f"{made.key} {made.round}"
        if key not in seen:
            seen.add(key)
            found += [(task, made.round, attempt) for attempt in made.attempts]
    return found


def _row(task: TaskRow, number: int, attempt: Attempt) -> dict[str, object]:
    return {
        "task": task.task,
        "kernel": task.kernel,
        "workload": task.workload,
        "hardware": task.hardware,
        "round": number,
        "attempt": attempt.number,
        "outcome": str(attempt.outcome),
        "reason": attempt.reason,
        "parent": attempt.parent,
        "variant": attempt.variant,
        "change": attempt.change,
        "model": attempt.model,
        "template": attempt.prompt,
        "requests": len(attempt.asked),
        "tries": sum(asked.tries for asked in attempt.asked),
        "prompt_tokens": attempt.prompt_tokens,
        "completion_tokens": attempt.completion_tokens,
        "cost": attempt.cost,
        "currency": attempt.currency,
        "seconds": attempt.seconds,
        "answers": " ".join(asked.entry for asked in attempt.asked),
    }
