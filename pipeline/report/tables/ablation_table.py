"""What each technique is worth. In: measured results. Out: the best variant against itself without one.

A search `ablation` sees to it that both variants are there, a grid has them anyway; one that failed has its
outcome in place of a time. Of a search `ablation` the variant is the one that its last round began from: a
faster one that came up there has no variants around it.

The ratio is that of the two times that the table shows (`Profiled.time`), its interval follows from theirs.
The technique pays if the whole interval lies above the row's threshold, and costs if it lies below one over
it: 1 % between variants that were each timed in several processes, 10 % if one of them was timed in one.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pipeline.measure.statistics import verdict
from pipeline.performance.metrics import ColumnType
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.record import Record
from pipeline.records.results.collection import Collected, Result
from pipeline.records.results.profiled import ConfidenceInterval
from pipeline.report.tables.search_tables import TASK, configuration, median_seconds, task_cells
from pipeline.report.tables.variants_table import row_table
from pipeline.report.winner_selection import room_between
from pipeline.search.spaces.search_space import Subspace, space_of
from pipeline.search.spaces.technique_removal import Without, without_each
from pipeline.search.strategy_registry import strategy, strategy_names

if TYPE_CHECKING:
    import pyarrow as pa

VERDICTS = {"faster": "pays", "slower": "costs", "indistinguishable": "indistinguishable"}

SCHEMA: dict[str, ColumnType] = {
    **TASK,
    "implementation": "string",
    "best_variant": "string",
    "best_configuration": "string",
    "technique": "string",
    "changed": "string",
    "along": "string",
    "variant": "string",
    "best_seconds": "double",
    "seconds": "double",
    "time_ratio": "double",
    "time_ratio_low": "double",
    "time_ratio_high": "double",
    "confidence": "double",
    "threshold": "double",
    "verdict": "string",
}


class AblationTable(Record, frozen=True, kw_only=True):
    """One technique of one task's best variant."""

    best: Result
    without: Result
    technique: str
    """Its name; of a tunable that expresses none: the tunable's."""
    changed: tuple[str, ...]
    """`vectorize=True -> False`"""
    along: tuple[str, ...]
    """The same of what the rules made change with it; empty where all else is equal."""

    @property
    def ratio(self) -> ConfidenceInterval | None:
        """Time without over time with it; None: without it there is no time."""
        if self.best.profiled is None or self.without.profiled is None:
            return None
        return self.without.profiled.time.over(self.best.profiled.time)

    @property
    def threshold(self) -> float | None:
        """Ratio beyond which the whole interval must lie."""
        if self.best.profiled is None or self.without.profiled is None:
            return None
        return room_between(self.best.profiled, self.without.profiled)

    @property
    def verdict(self) -> str:
        """In a word, where the interval says one; the outcome of what failed."""
        if self.ratio is None or self.threshold is None:
            return self.without.outcome
        return VERDICTS[verdict(self.ratio, self.threshold)]


def find_ablations(collected: Collected) -> list[AblationTable]:
    """Of each task the best variant, and what it loses without each of its techniques."""
    of_task: dict[str, list[Result]] = {}
    for result in collected.results:
        if not result.variant.written:
            of_task.setdefault(result.task.task, []).append(result)
    found: list[AblationTable] = []
    for results in of_task.values():
        spec = collected.declared.get(results[0].task.generate)
        if spec is not None:
            for best in _centres(results, spec):
                found += _of_best(best, results, spec)
    return found


def _centres(results: Sequence[Result], spec: GenerateSpec) -> list[Result]:
    """The winner; of an ablation what its last round began from, which the search chose by its time."""
    measured = [each for each in results if each.profiled is not None]
    if _ablates(spec.search.strategy):
        earlier = [each for each in measured if each.round < spec.search.rounds - 1]
        if not earlier:
            return [each for each in measured if each.default]
        return [min(earlier, key=median_seconds)]
    return [min(measured, key=median_seconds)] if measured else []


def _ablates(name: str) -> bool:
    """Whether its last round is an ablation; the strategy of another machine's package may not be here."""
    return name in strategy_names() and strategy(name).ablates


def _of_best(best: Result, results: Sequence[Result], spec: GenerateSpec) -> Iterator[AblationTable]:
    subspace = _subspace(best, spec)
    if subspace is None:
        return
    by_point = {
        _point(each.variant.tunables): each
        for each in results
        if each.variant.implementation == best.variant.implementation
    }
    for each in without_each(subspace, best.variant.tunables):
        without = by_point.get(_point(each.tunables))
        if without is not None:
            yield _ablated(best, without, each)


def _subspace(best: Result, spec: GenerateSpec) -> Subspace | None:
    """Where the variant is a point; None: it is none of the declared space."""
    for each in space_of(spec).subspaces:
        if each.implementation == best.variant.implementation and each.contains(best.variant.tunables):
            return each
    return None


def _ablated(best: Result, without: Result, each: Without) -> AblationTable:
    def told(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"{name}={best.variant.tunables[name]} -> {each.tunables[name]}" for name in names)

    return AblationTable(
        best=best,
        without=without,
        technique=each.technique,
        changed=told(each.changed),
        along=told(each.along),
    )


def _point(tunables: Mapping[str, TunableValue]) -> tuple[tuple[str, TunableValue], ...]:
    return tuple(sorted(tunables.items()))


def ablation_table(found: Sequence[AblationTable]) -> "pa.Table":
    """One row per technique, the one that pays most first, what failed last."""
    ordered = sorted(found, key=lambda each: (each.best.task.task, each.best.id, -_size(each)))
    return row_table(SCHEMA, [_row(each) for each in ordered])


def _size(each: AblationTable) -> float:
    return 0.0 if each.ratio is None else each.ratio.value


def _row(each: AblationTable) -> dict[str, object]:
    ratio = each.ratio
    return {
        **task_cells(each.best.task),
        "implementation": each.best.variant.implementation,
        "best_variant": each.best.id,
        "best_configuration": configuration(each.best.variant.tunables),
        "technique": each.technique,
        "changed": ", ".join(each.changed),
        "along": ", ".join(each.along) or None,
        "variant": each.without.id,
        "best_seconds": median_seconds(each.best),
        "seconds": None if each.without.profiled is None else median_seconds(each.without),
        "time_ratio": None if ratio is None else ratio.value,
        "time_ratio_low": None if ratio is None else ratio.low,
        "time_ratio_high": None if ratio is None else ratio.high,
        "confidence": None if ratio is None else ratio.confidence,
        "threshold": each.threshold,
        "verdict": each.verdict,
    }
