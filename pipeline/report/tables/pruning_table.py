"""What static pruning lost. In: results, and what the search had pruned. Out: a row per task that prunes.

Of what the rule would drop a share is measured all the same. If the best of these is faster than the best of
what the rule keeps, the rule loses by that much, at least.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pipeline.performance.metrics import ColumnType
from pipeline.records.configuration.pruning import Prune
from pipeline.records.outcome import Outcome
from pipeline.records.planning.specs import TaskRow
from pipeline.records.record import Record
from pipeline.records.results.collection import Collected, Result
from pipeline.report.tables.search_columns import TASK, task_cells
from pipeline.report.tables.variants_table import row_table
from pipeline.search.static_pruning import reason

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA: dict[str, ColumnType] = {
    **TASK,
    "compiled": "int64",
    "dropped": "int64",
    "measured_anyway": "int64",
    "undecided": "int64",
    "why_undecided": "string",
    "best_kept_seconds": "double",
    "best_dropped_seconds": "double",
    "loss": "double",
}


class Pruning(Record, frozen=True, kw_only=True):
    """One task."""

    task: TaskRow
    compiled: int
    dropped: int
    measured_anyway: int
    """Of those that the rule would drop."""
    undecided: tuple[str, ...] = ()
    """Of each that stayed because a rule could not say anything about it: why."""
    best_kept: float | None
    """Seconds per call."""
    best_dropped: float | None
    """Seconds per call of the best that was measured anyway."""

    @property
    def loss(self) -> float | None:
        """How many times faster the best variant would be without the rule, as far as it was measured."""
        if self.best_kept is None or self.best_dropped is None:
            return None
        return max(1.0, self.best_kept / self.best_dropped)

    @property
    def why_undecided(self) -> str | None:
        """The reasons, each once."""
        return "; ".join(dict.fromkeys(self.undecided)) or None

    @property
    def sentence(self) -> str:
        """For the terminal and the report."""
        told = f"static pruning dropped {self.dropped} of {self.compiled} compiled variants"
        if self.undecided:
            told += f" and could not judge {len(self.undecided)} ({self.why_undecided})"
        if self.best_kept is None:
            return f"{told}; nothing that it keeps was measured"
        if self.loss is None:
            return f"{told}; what this loses is not known: none of the kind was measured"
        lost = "no faster than the best that it keeps" if self.loss == 1 else f"{self.loss:.3g} times faster"
        return f"{told}; the best of {self.measured_anyway} that were measured all the same is {lost}"


def find_prunings(collected: Collected) -> list[Pruning]:
    """Tasks whose search prunes."""
    of_task: dict[str, list[Result]] = {}
    for result in collected.results:
        of_task.setdefault(result.task.task, []).append(result)
    return [each for results in of_task.values() for each in _of_task(results, collected)]


def _of_task(results: Sequence[Result], collected: Collected) -> Iterator[Pruning]:
    task = results[0].task
    spec = collected.declared.get(task.generate)
    if spec is None or spec.search.prune is None:
        return
    prune = spec.search.prune
    unwanted = [each for each in results if _is_unwanted(each, prune)]
    measured = [each for each in unwanted if each.profiled is not None]
    kept = [each for each in results if each.profiled is not None and not _is_unwanted(each, prune)]
    yield Pruning(
        task=task,
        compiled=sum(each.compiled is not None for each in results),
        dropped=sum(each.outcome is Outcome.PRUNED for each in results),
        measured_anyway=len(measured),
        undecided=tuple(each.undecided for each in results if each.undecided is not None),
        best_kept=_best(kept),
        best_dropped=_best(measured),
    )


def _is_unwanted(result: Result, prune: Prune) -> bool:
    """As verify said; what an older release wrote says it of facts only."""
    if result.unwanted is not None:
        return True
    return result.compiled is not None and reason(result.compiled.facts, prune) is not None


def _best(results: Sequence[Result]) -> float | None:
    times = [each.profiled.timing.median.value for each in results if each.profiled is not None]
    return min(times, default=None)


def pruning_table(found: Sequence[Pruning]) -> "pa.Table":
    """One row per task."""
    return row_table(SCHEMA, [_row(each) for each in found])


def _row(each: Pruning) -> dict[str, object]:
    return {
        **task_cells(each.task),
        "compiled": each.compiled,
        "dropped": each.dropped,
        "measured_anyway": each.measured_anyway,
        "undecided": len(each.undecided),
        "why_undecided": each.why_undecided,
        "best_kept_seconds": each.best_kept,
        "best_dropped_seconds": each.best_dropped,
        "loss": each.loss,
    }
