"""How each search went. In: what generate proposed and what came of it. Out: a row per task and round."""

import collections
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline.performance.metrics import ColumnType
from pipeline.records.outcome import Outcome
from pipeline.records.planning.specs import TaskRow
from pipeline.records.record import Record
from pipeline.records.results.collection import Collected, Result
from pipeline.records.results.variant import Generated
from pipeline.report.tables.search_columns import TASK, configuration, median_seconds, task_cells
from pipeline.report.tables.variants_table import row_table

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA: dict[str, ColumnType] = {
    **TASK,
    "round": "int64",
    "proposed": "int64",
    "screened": "int64",
    "pruned": "int64",
    "failed": "int64",
    "measured": "int64",
    "variants": "int64",
    "spent_seconds": "double",
    "best_seconds": "double",
    "best_variant": "string",
    "best_configuration": "string",
    "stop": "string",
    "reason": "string",
    "remarks": "string",
}


class SearchRound(Record, frozen=True, kw_only=True):
    """One round of one task."""

    task: TaskRow
    round: int
    proposed: int
    screened: int
    """Measured briefly."""
    pruned: int
    """By the facts of the binary, before verify."""
    failed: int
    measured: int
    """Fully."""
    variants: int
    """Proposed until then, in all rounds."""
    spent: float
    """Seconds that the stages took for the variants until then, one after the other, when they ran."""
    best: Result | None
    """The fastest until then."""
    stop: str | None
    """Kind of the reason why the round proposes nothing."""
    reason: str | None
    remarks: tuple[str, ...]


def find_rounds(collected: Collected) -> list[SearchRound]:
    """All rounds, task by task."""
    of_task: dict[str, dict[int, list[Result]]] = {}
    for result in (*collected.results, *collected.repeated):
        of_task.setdefault(result.task.task, {}).setdefault(result.round, []).append(result)
    made: dict[str, list[tuple[TaskRow, Generated]]] = collections.defaultdict(list)
    for task, generated in collected.generated:
        made[task.task].append((task, generated))
    return [each for name, rounds in made.items() for each in _of_task(rounds, of_task.get(name, {}))]


def _of_task(
    generated: list[tuple[TaskRow, Generated]], results: dict[int, list[Result]]
) -> Iterator[SearchRound]:
    best: Result | None = None
    variants, spent = 0, 0.0
    for task, each in generated:
        now = results.get(each.round, [])
        measured = [result for result in now if result.profiled is not None]
        # Of equal ones the first, as among the winners.
        best = min([*([best] if best else []), *measured], key=median_seconds, default=None)
        variants += len(each.variants)
        spent += sum(record.seconds for result in now for record in result.records.values())
        screened = sum(result.outcome is Outcome.SCREENED for result in now)
        pruned = sum(result.outcome is Outcome.PRUNED for result in now)
        yield SearchRound(
            task=task,
            round=each.round,
            proposed=len(each.variants),
            screened=screened,
            pruned=pruned,
            failed=len(now) - len(measured) - screened - pruned,
            measured=len(measured),
            variants=variants,
            spent=spent,
            best=best,
            stop=each.stop.kind if each.stop else None,
            reason=each.stop.reason if each.stop else None,
            remarks=each.remarks,
        )


def rounds_table(rounds: list[SearchRound]) -> "pa.Table":
    """Best so far, what was spent, and why it ended."""
    return row_table(SCHEMA, [_row(each) for each in rounds])


def _row(each: SearchRound) -> dict[str, object]:
    tunables = each.best.variant.tunables if each.best else {}
    return {
        **task_cells(each.task),
        "round": each.round,
        "proposed": each.proposed,
        "screened": each.screened,
        "pruned": each.pruned,
        "failed": each.failed,
        "measured": each.measured,
        "variants": each.variants,
        "spent_seconds": each.spent,
        "best_seconds": median_seconds(each.best) if each.best else None,
        "best_variant": each.best.id if each.best else None,
        "best_configuration": configuration(tunables) or None,
        "stop": each.stop,
        "reason": each.reason,
        "remarks": " · ".join(each.remarks) or None,
    }
