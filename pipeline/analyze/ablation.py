"""What each technique is worth. In: measured results. Out: the best variant against itself without one.

A row needs both variants measured: a search `ablation` sees to that, a grid has them anyway. The interval is
a percentile bootstrap over the batches of both (Efron, "Bootstrap methods: another look at the jackknife",
Ann. Statist. 7(1), 1979); the two were measured one after the other, so a drift of the machine between them
is not in it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pipeline.analyze.collect import Collected, Result
from pipeline.analyze.columns import ColumnType
from pipeline.analyze.searched import TASK, configuration, median_seconds, task_cells
from pipeline.analyze.tables import row_table
from pipeline.records.kernel import Implementation, TunableValue
from pipeline.records.profiled import Interval
from pipeline.records.record import Record

if TYPE_CHECKING:
    import pyarrow as pa

RESAMPLES = 2000
CONFIDENCE = 0.95
SEED = 20240229  # the bootstrap's own: equal data give equal tables

SCHEMA: dict[str, ColumnType] = {
    **TASK,
    "implementation": "string",
    "best_variant": "string",
    "best_configuration": "string",
    "technique": "string",
    "changed": "string",
    "variant": "string",
    "best_seconds": "double",
    "seconds": "double",
    "time_ratio": "double",
    "time_ratio_low": "double",
    "time_ratio_high": "double",
    "confidence": "double",
    "verdict": "string",
}

Tunables = Mapping[str, TunableValue]


class Ablated(Record, frozen=True, kw_only=True):
    """One technique of one task's best variant."""

    best: Result
    without: Result
    technique: str
    """Its name; of a tunable that expresses none: the tunable's."""
    changed: tuple[str, ...]
    """`vectorize=True -> False`"""
    ratio: Interval
    """Time without over time with it: above 1 the technique pays."""

    @property
    def verdict(self) -> str:
        """In a word, where the interval says one."""
        if self.ratio.low > 1:
            return "pays"
        return "costs" if self.ratio.high < 1 else "indistinguishable"


def find_ablations(collected: Collected) -> list[Ablated]:
    """Of each task the best variant, and what it loses without each of its techniques."""
    of_task: dict[str, list[Result]] = {}
    for result in collected.results:
        if result.profiled is not None and not result.variant.written:
            of_task.setdefault(result.task.task, []).append(result)
    found: list[Ablated] = []
    for results in of_task.values():
        best = min(results, key=median_seconds)
        spec = collected.declared.get(best.task.generate)
        if spec is not None and best.variant.implementation in spec.implementations:
            found += _of_best(best, results, spec.implementations[best.variant.implementation])
    return found


def _of_best(best: Result, results: Sequence[Result], declared: Implementation) -> Iterator[Ablated]:
    same = [each for each in results if each.variant.implementation == best.variant.implementation]
    by_point = {_point(each.variant.tunables): each for each in same}
    for technique, changed in _changes(best.variant.tunables, declared):
        without = by_point.get(_point({**best.variant.tunables, **changed}))
        if without is not None and without is not best:
            yield Ablated(
                best=best,
                without=without,
                technique=technique,
                changed=tuple(
                    f"{name}={best.variant.tunables[name]} -> {to}" for name, to in changed.items()
                ),
                ratio=_ratio(without, best),
            )


def _changes(tunables: Tunables, declared: Implementation) -> Iterator[tuple[str, dict[str, TunableValue]]]:
    """Technique -> the tunables that switch it off; a tunable without one goes back to its default."""
    off: dict[str, dict[str, TunableValue]] = {}
    for name, tunable in declared.tunables.items():
        if tunable.technique is not None and tunable.off is not None:
            if tunables[name] != tunable.off:
                off.setdefault(tunable.technique, {})[name] = tunable.off
        elif tunables[name] != tunable.default:
            off[name] = {name: tunable.default}
    yield from off.items()


def _point(tunables: Tunables) -> tuple[tuple[str, TunableValue], ...]:
    return tuple(sorted(tunables.items()))


def _ratio(one: Result, other: Result) -> Interval:
    """Of the medians, with its interval."""
    import numpy as np

    assert one.profiled is not None and other.profiled is not None
    generator = np.random.default_rng(SEED)
    medians = []
    for result in (one.profiled, other.profiled):
        samples = np.asarray(result.timing.samples)
        picked = generator.integers(0, len(samples), (RESAMPLES, len(samples)))
        medians.append(np.median(samples[picked], axis=1))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(medians[0] / medians[1], (tail, 1 - tail))
    value = one.profiled.timing.median.value / other.profiled.timing.median.value
    return Interval(value=value, low=float(low), high=float(high), confidence=CONFIDENCE)


def ablation_table(found: Sequence[Ablated]) -> "pa.Table":
    """One row per technique, the one that pays most first."""
    ordered = sorted(found, key=lambda each: (each.best.task.task, -each.ratio.value))
    return row_table(SCHEMA, [_row(each) for each in ordered])


def _row(each: Ablated) -> dict[str, object]:
    return {
        **task_cells(each.best.task),
        "implementation": each.best.variant.implementation,
        "best_variant": each.best.id,
        "best_configuration": configuration(each.best.variant.tunables),
        "technique": each.technique,
        "changed": ", ".join(each.changed),
        "variant": each.without.id,
        "best_seconds": median_seconds(each.best),
        "seconds": median_seconds(each.without),
        "time_ratio": each.ratio.value,
        "time_ratio_low": each.ratio.low,
        "time_ratio_high": each.ratio.high,
        "confidence": each.ratio.confidence,
        "verdict": each.verdict,
    }
