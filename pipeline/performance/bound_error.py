"""Bounds of one variant from its result, and how far they lie from what was measured."""

import collections
from collections.abc import Callable, Sequence
from typing import Literal

from pipeline.performance.roofline import estimate_roofline_seconds, latency_seconds, peak_rates
from pipeline.performance.time_bound import (
    Bound,
    BoundDevice,
    Geometry,
    LeastWork,
    Rates,
    bandwidth_share,
    bound,
    launch_of,
    reachable_flops,
)
from pipeline.records.outcome import Outcome
from pipeline.records.record import Record
from pipeline.records.results.collection import Result


def declared_bound(result: Result) -> Bound | None:
    """From the target's declared peaks and the launch's shape; None where a peak is not declared."""
    rates, work = _declared_rates(result), _work(result)
    return bound(work, rates, geometry_of(result)) if rates and work else None


def ceiling_bound(result: Result) -> Bound | None:
    """From the ceilings measured together with the variant, its vectors and its launch; None without them."""
    ceilings, work = result.profiled.ceilings if result.profiled else None, _work(result)
    if ceilings is None or work is None:
        return None
    arithmetic = reachable_flops(
        result.compiled.facts if result.compiled else None,
        _device(result),
        vector_flops=ceilings.vector_flops,
        matrix_flops=ceilings.matrix_flops,
    )
    return bound(work, Rates(bandwidth=ceilings.cache_bandwidth, arithmetic=arithmetic), geometry_of(result))


def declared_bandwidth_share(result: Result) -> float | None:
    """Share of the declared bandwidth that the variant's loads in flight can sustain (Little's law)."""
    rates, launch = _declared_rates(result), geometry_of(result)
    return bandwidth_share(rates, launch) if rates and launch else None


def geometry_of(result: Result) -> Geometry | None:
    """How the variant's launch spreads over the target; None on a CPU, and where a call launches several."""
    return launch_of(result.compiled, _device(result)) if result.compiled else None


def _device(result: Result) -> BoundDevice:
    task = result.task
    return BoundDevice(kind=task.kind, unit=task.unit, limits=task.limits)


def _declared_rates(result: Result) -> Rates | None:
    bandwidth, arithmetic = peak_rates(result.task)
    if bandwidth is None or arithmetic is None:
        return None
    return Rates(bandwidth=bandwidth, arithmetic=arithmetic, latency=latency_seconds(result.task.peaks))


def _work(result: Result) -> LeastWork | None:
    task = result.task
    if task.flops is None or task.bytes is None:
        return None
    return LeastWork(flops=task.flops, bytes=task.bytes, read=task.read)


Basis = Literal["declared_peaks", "declared_peaks_and_launch", "measured_ceilings"]

_FEWEST = 3
"""Variants below which a rank correlation says nothing."""


class Pair(Record, frozen=True, kw_only=True):
    """One variant: what was estimated, what was measured."""

    estimate: float
    """Seconds."""
    measured: float


class Error(Record, frozen=True, kw_only=True):
    """Of the estimates of a group of variants."""

    variants: int
    ratio_least: float
    """Of measured over estimated time; below 1 the bound was wrong."""
    ratio_low: float
    """Quantiles: 5 %,"""
    ratio_quarter: float
    ratio_median: float
    ratio_three_quarters: float
    ratio_high: float
    """95 %."""
    below: int
    """Variants that were measured faster than their bound."""
    distinct: int
    """Different estimates: where it is 1, the bound cannot rank."""
    kendall: float | None
    """Rank correlation (tau-b) of estimates and times; None where one of them does not vary."""
    spearman: float | None
    best: float | None
    """Least time over the time of the variant that the estimate would choose: 1 is the right choice; of
    several equal estimates their mean time counts. None where all estimates are equal."""


class TaskError(Record, frozen=True, kw_only=True):
    """One task and basis."""

    result: Result
    """Any of the task's."""
    basis: Basis
    refused: int
    """Variants whose time was refused as `over_roofline`: they are faster than the bound, and not among the
    ratios."""
    fits_cache: bool | None
    """Whether the call's bytes fit the last cache that the target declares; then memory's bandwidth is no
    bound for a call on warm caches."""
    error: Error


def error_of(pairs: Sequence[Pair]) -> Error | None:
    """Ratios and ranks; None without a pair."""
    if not pairs:
        return None
    import numpy as np

    ratios = np.array([pair.measured / pair.estimate for pair in pairs])
    low, quarter, median, three, high = np.quantile(ratios, (0.05, 0.25, 0.5, 0.75, 0.95)).tolist()
    kendall, spearman = _ranks(pairs)
    return Error(
        variants=len(pairs),
        ratio_least=float(ratios.min()),
        ratio_low=low,
        ratio_quarter=quarter,
        ratio_median=median,
        ratio_three_quarters=three,
        ratio_high=high,
        below=int((ratios < 1).sum()),
        distinct=len({pair.estimate for pair in pairs}),
        kendall=kendall,
        spearman=spearman,
        best=_best(pairs),
    )


def find_errors(results: Sequence[Result]) -> list[TaskError]:
    """One entry for each task and basis that has both estimates and measurements."""
    tasks: dict[str, list[Result]] = collections.defaultdict(list)
    for result in results:
        tasks[result.task.task].append(result)
    found = []
    for group in tasks.values():
        measured = [result for result in group if result.profiled]
        refused = sum(result.outcome is Outcome.OVER_ROOFLINE for result in group)
        for basis, estimate in _ESTIMATES.items():
            error = error_of(_pairs(measured, estimate))
            if error is not None:
                found.append(
                    TaskError(
                        result=group[0],
                        basis=basis,
                        refused=refused,
                        fits_cache=_fits_cache(group[0]),
                        error=error,
                    )
                )
    return found


def _launch_seconds(result: Result) -> float | None:
    found = declared_bound(result)
    return found.seconds if found else None


def _ceiling_seconds(result: Result) -> float | None:
    found = ceiling_bound(result)
    return found.seconds if found else None


_ESTIMATES: dict[Basis, Callable[[Result], float | None]] = {
    "declared_peaks": lambda result: estimate_roofline_seconds(result.task),
    "declared_peaks_and_launch": _launch_seconds,
    "measured_ceilings": _ceiling_seconds,
}


def _pairs(results: Sequence[Result], estimate: Callable[[Result], float | None]) -> list[Pair]:
    pairs = []
    for result in results:
        seconds = estimate(result)
        if result.profiled and seconds:
            pairs.append(Pair(estimate=seconds, measured=result.profiled.time.value))
    return pairs


def _fits_cache(result: Result) -> bool | None:
    caches = [size for name, size in result.task.limits.items() if name.endswith("_cache")]
    return result.task.bytes <= max(caches) if caches and result.task.bytes is not None else None


def _ranks(pairs: Sequence[Pair]) -> tuple[float | None, float | None]:
    """Kendall's tau-b and Spearman's rho."""
    estimates, times = [pair.estimate for pair in pairs], [pair.measured for pair in pairs]
    if len(pairs) < _FEWEST or len(set(estimates)) == 1 or len(set(times)) == 1:
        return None, None
    from scipy import stats

    return (
        float(stats.kendalltau(estimates, times).statistic),
        float(stats.spearmanr(estimates, times).statistic),
    )


def _best(pairs: Sequence[Pair]) -> float | None:
    least = min(pair.estimate for pair in pairs)
    chosen = [pair.measured for pair in pairs if pair.estimate == least]
    if len(chosen) == len(pairs):
        return None
    return min(pair.measured for pair in pairs) / (sum(chosen) / len(chosen))
