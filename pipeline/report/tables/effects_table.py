"""Which tunables matter: measured results in, the effect of each level of each tunable out.

Variants that are equal but for one tunable form a group. Between two levels the difference is the median,
over the groups that hold both, of the difference of the logarithms of their times; the effects are the
least-squares solution of all these differences with mean zero, so a group that lacks a level (constraints
cut the space, variants fail) biases nothing. Intervals are percentile bootstraps over groups (Efron,
"Bootstrap methods: another look at the jackknife", Ann. Statist. 7(1), 1979). Where a search left no groups
that connect the levels, each time is divided by the geometric mean of all: method `unmatched`, in which
other tunables are not held equal.
"""

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pipeline.performance.metrics import ColumnType
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.record import Record
from pipeline.records.results.aggregated import Cell
from pipeline.records.results.collection import Result
from pipeline.report.tables.variants_table import row_table

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    Array = npt.NDArray[np.float64]

RESAMPLES = 1000
RESAMPLED_AT_MOST = 200_000  # differences per tunable: large spaces need fewer resamples, and at least 200
CONFIDENCE = 0.95
INTERVAL_FROM = 3  # fewer groups say nothing about their spread: no interval
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
    """Groups that hold this level and another one; variants, where unmatched."""
    method: Literal["matched", "unmatched"]
    time_ratio: float
    """Time over the geometric mean of the levels, all else equal: below 1 is faster than the others."""
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
        if result.profiled is None or result.variant.written:  # another text: not all else is equal
            continue
        task, variant = result.task, result.variant
        cell = Cell(kernel=task.kernel, workload=task.workload, hardware=task.hardware, dtype=task.dtype)
        times = spaces.setdefault((cell, variant.implementation), {})
        times[tuple(variant.tunables.items())] = result.profiled.time.value
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
    method: Literal["matched", "unmatched"] = "matched"
    fits = _matched(tunable, levels, times)
    if fits is None:
        fits, method = _unmatched(tunable, levels, times), "unmatched"
    best = min(times.values())
    centres = [fit.centre for fit in fits]
    return [
        Effect(
            cell=cell,
            implementation=implementation,
            tunable=tunable,
            level=level,
            variants=len(_having(tunable, level, times)),
            groups=fit.groups,
            method=method,
            time_ratio=math.exp(fit.centre),
            time_ratio_low=None if fit.interval is None else math.exp(fit.interval[0]),
            time_ratio_high=None if fit.interval is None else math.exp(fit.interval[1]),
            best_ratio=min(_having(tunable, level, times)) / best,
            range=math.exp(max(centres) - min(centres)),
        )
        for level, fit in zip(levels, fits, strict=True)
    ]


def _levels(tunable: str, times: Times) -> list[TunableValue]:
    found = dict.fromkeys(value for point in times for name, value in point if name == tunable)
    # Numbers in order; texts in the order in which they were declared.
    return sorted(found) if all(not isinstance(value, str) for value in found) else list(found)


def _having(tunable: str, level: TunableValue, times: Times) -> list[float]:
    return [seconds for point, seconds in times.items() if (tunable, level) in point]


class _Fit(Record, frozen=True, kw_only=True):
    """Effect of one level on the logarithm of time."""

    centre: float
    interval: tuple[float, float] | None
    groups: int


def _matched(tunable: str, levels: list[TunableValue], times: Times) -> list[_Fit] | None:
    """Fits from groups in which only this tunable differs; None where they do not connect all levels."""
    import numpy as np

    logs = _grouped(tunable, levels, times)
    edges = [
        (one, other)
        for one, other in itertools.combinations(range(len(levels)), 2)
        if np.isfinite(logs[:, one] - logs[:, other]).any()
    ]
    incidence = np.zeros((len(edges), len(levels)))
    for row, (one, other) in enumerate(edges):
        incidence[row, one], incidence[row, other] = 1, -1
    if not edges or np.linalg.matrix_rank(incidence) < len(levels) - 1:
        return None
    differences = np.stack([logs[:, one] - logs[:, other] for one, other in edges], axis=1)
    solve = np.linalg.pinv(incidence)
    point = _medians(differences[None])[0]
    resamples = max(200, min(RESAMPLES, RESAMPLED_AT_MOST // differences.size))
    picks = np.random.default_rng(SEED).integers(0, len(logs), size=(resamples, len(logs)))
    drawn = _medians(differences[picks])
    # A resample may miss every group that connects two levels; then what all groups say stands in.
    centres = np.where(np.isnan(drawn), point, drawn) @ solve.T
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(centres, [tail, 1 - tail], axis=0)
    groups = np.isfinite(logs).sum(axis=0)
    return [
        _Fit(
            centre=float(centre),
            interval=(float(low[place]), float(high[place])) if groups[place] >= INTERVAL_FROM else None,
            groups=int(groups[place]),
        )
        for place, centre in enumerate(solve @ point)
    ]


def _grouped(tunable: str, levels: list[TunableValue], times: Times) -> "Array":
    """Logarithms of time: a row per group of at least two, a column per level, NaN where there is none."""
    import numpy as np

    column = {level: place for place, level in enumerate(levels)}
    groups: dict[tuple[tuple[str, TunableValue], ...], list[float]] = {}
    for point, seconds in times.items():
        for name, level in point:
            if name == tunable:
                rest = tuple(pair for pair in point if pair[0] != tunable)
                row = groups.setdefault(rest, [math.nan] * len(levels))
                row[column[level]] = math.log(seconds)
    logs = np.array(list(groups.values()))
    return np.asarray(logs[np.isfinite(logs).sum(axis=1) > 1])


def _medians(values: "Array") -> "Array":
    """Median over the middle axis of the finite ones; numpy's own nanmedian takes a hundred times as long."""
    import numpy as np

    ordered = np.sort(values, axis=1)  # NaN goes last
    count = np.isfinite(values).sum(axis=1)
    low = np.take_along_axis(ordered, np.maximum(count - 1, 0)[:, None] // 2, axis=1)
    high = np.take_along_axis(ordered, np.minimum(count // 2, values.shape[1] - 1)[:, None], axis=1)
    return np.asarray(np.where(count > 0, (low + high)[:, 0] / 2, np.nan))


def _unmatched(tunable: str, levels: list[TunableValue], times: Times) -> list[_Fit]:
    """Fits against the geometric mean of all variants."""
    import numpy as np

    mean = sum(math.log(seconds) for seconds in times.values()) / len(times)
    fits = []
    for level in levels:
        values = np.log(_having(tunable, level, times)) - mean
        interval = None
        if len(values) >= INTERVAL_FROM:
            picks = np.random.default_rng(SEED).integers(0, len(values), size=(RESAMPLES, len(values)))
            tail = (1 - CONFIDENCE) / 2
            low, high = np.quantile(np.median(values[picks], axis=1), [tail, 1 - tail])
            interval = (float(low), float(high))
        fits.append(_Fit(centre=float(np.median(values)), interval=interval, groups=len(values)))
    return fits
