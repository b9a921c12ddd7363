"""What could explain a task's speed: its measured results and the table of effects in, axes of charts out."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pipeline.records.planning.specs import TaskRow
from pipeline.records.record import Record
from pipeline.records.results.collection import Result
from pipeline.track.charts.shared_views import ExplainingMetrics
from pipeline.track.runs import mlflow_names
from pipeline.track.runs.variant_run import VariantRun

FACTS = ("static/registers", "static/spills", "static/code_bytes")
AUTHORS = ("written_by", "agent/change")


class TaskAxes(Record, frozen=True, kw_only=True):
    """What varies among a task's measured variants."""

    baseline: str | None
    """The first one that the first of them was compared with."""
    tunables: dict[str, tuple[str, ...]]
    """Implementation -> those that vary."""
    numeric: tuple[str, ...]
    """Tunables that are metrics, too."""
    facts: tuple[str, ...]
    recorded: bool = False
    """Whether recorded measurements were replayed."""
    in_rounds: bool = False
    """Whether a search proposed them in more than one round."""
    authors: tuple[str, ...] = ()
    """Tags that tell who wrote a source, and for what change, where one of them has such."""

    @property
    def differ(self) -> bool:
        """Whether any tunable has two values among them."""
        return any(self.tunables.values())


Order = Mapping[tuple[str, ...], Sequence[str]]
"""Kernel, workload, hardware, dtype, implementation -> tunables, the strongest effect first."""


def read_order(aggregate: Path) -> Order:
    """The order in which aggregate lists the effects; empty where the table is not there."""
    order: dict[tuple[str, ...], dict[str, None]] = {}
    path = aggregate / "effects.csv"
    if path.is_file():
        with path.open(newline="") as stream:
            for row in csv.DictReader(stream):
                key = tuple(
                    row[name] for name in ("kernel", "workload", "hardware", "dtype", "implementation")
                )
                order.setdefault(key, {})[row["tunable"]] = None
    return {key: tuple(tunables) for key, tunables in order.items()}


def goal(axes: Iterable[TaskAxes]) -> str:
    """The metric to be explained: the speed-up over the first baseline; without one, the roofline's share.

    Of recorded measurements neither is known: the time.
    """
    several = list(axes)
    baseline = next((each.baseline for each in several if each.baseline is not None), None)
    if baseline is not None:
        return f"speedup/{baseline}"
    recorded = bool(several) and all(each.recorded for each in several)
    return "time/median_us" if recorded else "roofline_share"


def axes_of(results: Sequence[Result], runs: Sequence[VariantRun]) -> TaskAxes:
    """What varies among the measured variants of a task."""
    values: dict[str, dict[str, set[str]]] = {}
    for result in results:
        tunables = values.setdefault(result.variant.implementation, {})
        for name, value in result.variant.tunables.items():
            tunables.setdefault(name, set()).add(str(value))
    metrics = dict.fromkeys(name for run in runs for name in run.metrics)
    facts = {name: {run.metrics.get(name) for run in runs} - {None} for name in FACTS}
    compared = [entry for result in results if result.profiled for entry in result.profiled.comparisons]
    return TaskAxes(
        baseline=compared[0].baseline if compared else None,
        tunables={
            implementation: tuple(name for name, found in tunables.items() if len(found) > 1)
            for implementation, tunables in values.items()
        },
        numeric=tuple(name.removeprefix("tunable/") for name in metrics if name.startswith("tunable/")),
        facts=tuple(name for name, found in facts.items() if len(found) > 1),
        recorded=any(result.profiled and result.profiled.recorded for result in results),
        in_rounds=len({result.round for result in results}) > 1,
        authors=tuple(name for name in AUTHORS if any(name in run.tags for run in runs)),
    )


def explain(axes: TaskAxes, row: TaskRow, order: Order) -> ExplainingMetrics:
    """The tunables that vary, strongest first, and the facts that vary."""
    cell = (row.kernel, row.workload, row.hardware, row.dtype)
    return ExplainingMetrics(
        tunables={
            implementation: tuple(
                map(mlflow_names.key, _sorted(tunables, order.get((*cell, implementation), ())))
            )
            for implementation, tunables in axes.tunables.items()
            if tunables
        },
        numeric=frozenset(axes.numeric),
        facts=axes.facts,
        in_rounds=axes.in_rounds,
        authors=axes.authors,
    )


def _sorted(tunables: Sequence[str], strongest: Sequence[str]) -> list[str]:
    rank = {name: place for place, name in enumerate(strongest)}
    return sorted(tunables, key=lambda name: rank.get(name, len(rank)))
