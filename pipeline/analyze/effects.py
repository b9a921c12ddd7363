"""Which tunables matter: measured results in, the effect of each level of each tunable out.

Variants that are equal but for one tunable form a group; inside it, each time is divided by the geometric
mean of the group. The effect of a level is the median of these ratios over the groups, with a percentile
bootstrap interval over groups (Efron, "Bootstrap methods: another look at the jackknife", Ann. Statist.
7(1), 1979). Where constraints cut the space, groups that hold every level are used alone if there are
enough of them, because a group that lacks the slow level has a lower mean. Where a search left no groups,
each time is divided by the geometric mean of all variants: method `unmatched`, in which other tunables are
not held equal.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pipeline.analyze.collect import Result
from pipeline.analyze.columns import ColumnType
from pipeline.analyze.tables import row_table
from pipeline.records.kernel import TunableValue
from pipeline.records.record import Record
from pipeline.records.summary import Cell

if TYPE_CHECKING:
    import pyarrow as pa

RESAMPLES = 1000
CONFIDENCE = 0.95
GROUPS_AT_LEAST = 3  # complete groups that suffice to leave the incomplete ones out
INTERVAL_FROM = 3  # fewer ratios say nothing about their spread: no interval
SEED = 20240229  # the bootstrap's own: equal data give equal tables

EFFECTS: dict[str, ColumnType] = {
    "kernel": "string",
    "workload": "string",
    "hardware": "string",
    "dtype": "string",
    "implementation": "string",
    "tunable": "string",
    "level": "string",
    "variants": "int64",
    "groups": "int64",
    "method": "string",
    "time_ratio": "double",
    "time_ratio_low": "double",
    "time_ratio_high": "double",
    "confidence": "double",
    "best_ratio": "double",
    "range": "double",
}

Times = dict[tuple[tuple[str, TunableValue], ...], float]


class Effect(Record, frozen=True, kw_only=True):
    """One level of one tunable, in one cell and implementation."""

    cell: Cell
    implementation: str
    tunable: str
    level: TunableValue
    variants: int
    """Measured variants that have this level."""
    groups: int
    """Groups that the median is taken over."""
    method: Literal["matched", "unmatched"]
    time_ratio: float
    """Median of time over the group's geometric mean: below 1 is faster than the other levels."""
    time_ratio_low: float | None
    """None where there are too few groups for an interval."""
    time_ratio_high: float | None
    best_ratio: float
    """Best time that this level allows over the best time of all: 1 means that the winner has it."""
    range: float
    """Largest over smallest effect of the tunable: how much it matters."""


def find_effects(results: Sequence[Result]) -> tuple[Effect, ...]:
    """Effects of the tunables that vary among the measured variants; the strongest of a cell first."""
    spaces: dict[tuple[Cell, str], Times] = {}
    for result in results:
        if result.profiled is None:
            continue
        task, variant = result.task, result.variant
        cell = Cell(kernel=task.kernel, workload=task.workload, hardware=task.hardware, dtype=task.dtype)
        times = spaces.setdefault((cell, variant.implementation), {})
        times[tuple(variant.tunables.items())] = result.profiled.timing.median.value
    effects: list[Effect] = []
    for (cell, implementation), times in spaces.items():
        names = dict.fromkeys(name for point in times for name, _ in point)
        found = [_effects_of(cell, implementation, name, times) for name in names]
        effects += (effect for group in sorted(found, key=_importance, reverse=True) for effect in group)
    return tuple(effects)


def effects_table(effects: Sequence[Effect]) -> "pa.Table":
    """One row per level."""
    rows = []
    for effect in effects:
        row = {name: getattr(effect, name) for name in EFFECTS if hasattr(effect, name)}
        row |= {name: getattr(effect.cell, name) for name in ("kernel", "workload", "hardware", "dtype")}
        rows.append(row | {"level": str(effect.level), "confidence": CONFIDENCE})
    return row_table(EFFECTS, rows)


def _importance(effects: list[Effect]) -> float:
    return effects[0].range if effects else 0.0


def _effects_of(cell: Cell, implementation: str, tunable: str, times: Times) -> list[Effect]:
    levels = _levels(tunable, times)
    if len(levels) < 2:
        return []
    groups = _groups(tunable, times)
    ratios = _ratios(groups, levels)
    method: Literal["matched", "unmatched"] = "matched"
    if not all(ratios.values()):
        method = "unmatched"
        ratios = _ratios([_pool(tunable, times)], levels)
    medians = {level: _median_with_interval(logs) for level, logs in ratios.items()}
    best = min(times.values())
    centres = [centre for centre, _, _ in medians.values()]
    return [
        Effect(
            cell=cell,
            implementation=implementation,
            tunable=tunable,
            level=level,
            variants=len(_having(tunable, level, times)),
            groups=len(ratios[level]),
            method=method,
            time_ratio=math.exp(centre),
            time_ratio_low=None if low is None else math.exp(low),
            time_ratio_high=None if high is None else math.exp(high),
            best_ratio=min(_having(tunable, level, times)) / best,
            range=math.exp(max(centres) - min(centres)),
        )
        for level, (centre, low, high) in medians.items()
    ]


def _levels(tunable: str, times: Times) -> list[TunableValue]:
    found = dict.fromkeys(value for point in times for name, value in point if name == tunable)
    # Numbers in order; texts in the order in which they were declared.
    return sorted(found) if all(not isinstance(value, str) for value in found) else list(found)


def _having(tunable: str, level: TunableValue, times: Times) -> list[float]:
    return [seconds for point, seconds in times.items() if (tunable, level) in point]


Group = list[tuple[TunableValue, float]]


def _groups(tunable: str, times: Times) -> list[Group]:
    """Level and log time of the variants that are equal in all other tunables."""
    groups: dict[tuple[tuple[str, TunableValue], ...], Group] = {}
    for point, seconds in times.items():
        rest = tuple(pair for pair in point if pair[0] != tunable)
        level = next((value for name, value in point if name == tunable), None)
        if level is not None:
            groups.setdefault(rest, []).append((level, math.log(seconds)))
    several = [group for group in groups.values() if len(group) > 1]
    most = max((len(group) for group in several), default=0)
    complete = [group for group in several if len(group) == most]
    levels = {level for group in several for level, _ in group}
    return complete if most == len(levels) and len(complete) >= GROUPS_AT_LEAST else several


def _pool(tunable: str, times: Times) -> Group:
    return [
        (value, math.log(seconds))
        for point, seconds in times.items()
        for name, value in point
        if name == tunable
    ]


def _ratios(groups: list[Group], levels: list[TunableValue]) -> dict[TunableValue, list[float]]:
    """Level -> log of time over its group's geometric mean."""
    ratios: dict[TunableValue, list[float]] = {level: [] for level in levels}
    for group in groups:
        centre = sum(log for _, log in group) / len(group)
        for level, log in group:
            ratios[level].append(log - centre)
    return ratios


def _median_with_interval(logs: list[float]) -> tuple[float, float | None, float | None]:
    """Median and its percentile bootstrap interval, where there is enough to resample."""
    import numpy as np

    values = np.asarray(logs)
    if len(values) < INTERVAL_FROM:
        return float(np.median(values)), None, None
    picks = np.random.default_rng(SEED).integers(0, len(values), size=(RESAMPLES, len(values)))
    medians = np.median(values[picks], axis=1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(medians, [tail, 1 - tail])
    return float(np.median(values)), float(low), float(high)
