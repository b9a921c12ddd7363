"""Tables of searches: the best so far by round, and what pruning left out."""

import collections
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pipeline.performance.metrics import ColumnType
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.configuration.pruning import Prune
from pipeline.records.outcome import Outcome
from pipeline.records.planning.specs import TaskRow
from pipeline.records.record import Record
from pipeline.records.results.collection import Collected, Result
from pipeline.records.results.variant import Generated
from pipeline.report.tables.variants_table import row_table
from pipeline.search.variant_pruning import reason

if TYPE_CHECKING:
    import pyarrow as pa


TASK: dict[str, ColumnType] = {
    "task": "string",
    "kernel": "string",
    "workload": "string",
    "hardware": "string",
    "optimization": "string",
    "search": "string",
    "dtype": "string",
}


def task_cells(task: TaskRow) -> dict[str, object]:
    """Which search it was."""
    return {name: getattr(task, name) for name in TASK}


def configuration(tunables: Mapping[str, TunableValue]) -> str:
    """`BLOCK=128 num_warps=4`."""
    return " ".join(f"{name}={value}" for name, value in tunables.items())


def median_seconds(result: Result) -> float:
    """Of a call; only of a result that was measured."""
    assert result.profiled is not None
    return result.profiled.time.value


ROUND_COLUMNS: dict[str, ColumnType] = {
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
    return [each for name, rounds in made.items() for each in _rounds_of(rounds, of_task.get(name, {}))]


def _rounds_of(
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
    return row_table(ROUND_COLUMNS, [_round_row(each) for each in rounds])


def _round_row(each: SearchRound) -> dict[str, object]:
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


PRUNING_COLUMNS: dict[str, ColumnType] = {
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
    return [each for results in of_task.values() for each in _pruning_of(results, collected)]


def _pruning_of(results: Sequence[Result], collected: Collected) -> Iterator[Pruning]:
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
    times = [each.profiled.time.value for each in results if each.profiled is not None]
    return min(times, default=None)


def pruning_table(found: Sequence[Pruning]) -> "pa.Table":
    """One row per task."""
    return row_table(PRUNING_COLUMNS, [_pruning_row(each) for each in found])


def _pruning_row(each: Pruning) -> dict[str, object]:
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
