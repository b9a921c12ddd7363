"""What could explain a task's speed: its measured results and the table of effects in, axes of charts out."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from pipeline.analyze.collect import Result
from pipeline.track import names
from pipeline.track.runs import Run
from pipeline.track.views import Explained

FACTS = ("static/registers", "static/spills", "static/code_bytes")

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


def goal(results: Sequence[Result]) -> str:
    """The metric to be explained: the speed-up over the first baseline; without one, the roofline's share.

    Of recorded measurements neither is known: the time.
    """
    for result in results:
        if result.profiled and result.profiled.comparisons:
            return f"speedup/{result.profiled.comparisons[0].baseline}"
    timed = [result.profiled for result in results if result.profiled]
    return "time/median_us" if timed and timed[0].roofline_share is None else "roofline_share"


def explain(results: Sequence[Result], runs: Sequence[Run], order: Order) -> Explained:
    """The tunables that vary, strongest first, and the facts that vary."""
    values: dict[str, dict[str, set[str]]] = {}
    for result in results:
        tunables = values.setdefault(result.variant.implementation, {})
        for name, value in result.variant.tunables.items():
            tunables.setdefault(name, set()).add(str(value))
    varying = {
        implementation: tuple(
            names.key(name) for name in _sorted(tunables, order.get(_cell(results[0], implementation), ()))
        )
        for implementation, tunables in values.items()
    }
    metrics = [name for run in runs for name in run.metrics]
    facts = {name: {run.metrics.get(name) for run in runs} - {None} for name in FACTS}
    return Explained(
        tunables={implementation: found for implementation, found in varying.items() if found},
        numeric=frozenset(name.removeprefix("tunable/") for name in metrics if name.startswith("tunable/")),
        facts=tuple(name for name, found in facts.items() if len(found) > 1),
    )


def _cell(result: Result, implementation: str) -> tuple[str, ...]:
    row = result.task
    return (row.kernel, row.workload, row.hardware, row.dtype, implementation)


def _sorted(tunables: Mapping[str, set[str]], strongest: Sequence[str]) -> list[str]:
    varying = [name for name, found in tunables.items() if len(found) > 1]
    rank = {name: place for place, name in enumerate(strongest)}
    return sorted(varying, key=lambda name: rank.get(name, len(rank)))
