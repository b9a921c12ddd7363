"""The fastest verified and measured variant of each cell, or why there is none.

The winner is the variant with the least `Profiled.time`, which is the time that every table shows.
"""

import collections
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.measure.statistics import NEAR, RESOLUTION, verdict
from pipeline.performance.geometric_mean import geometric_mean, logarithm
from pipeline.performance.metrics import ColumnType
from pipeline.performance.metrics.variant_identity import author
from pipeline.performance.quantities import counted_outcome
from pipeline.performance.roofline import estimate_roofline_seconds
from pipeline.records.outcome import Outcome
from pipeline.records.record import Record
from pipeline.records.results.aggregated import BaselineComparison, Cell, NotMeasured, Winner
from pipeline.records.results.collection import Result
from pipeline.records.results.profiled import ConfidenceInterval, Profiled
from pipeline.report.tables.variants_table import row_table

if TYPE_CHECKING:
    import pyarrow as pa

WINNERS: dict[str, ColumnType] = {
    "kernel": "string",
    "workload": "string",
    "hardware": "string",
    "dtype": "string",
    "status": "string",
    "reason": "string",
    "task": "string",
    "variant": "string",
    "implementation": "string",
    "configuration": "string",
    "written_by": "string",
    "median_seconds": "double",
    "median_seconds_low": "double",
    "median_seconds_high": "double",
    "bytes_per_second": "double",
    "flops_per_second": "double",
    "roofline_share": "double",
    "bound": "string",
    "verify_where": "string",
    "verify_preset": "string",
    "verify_weak": "string",
    "recorded": "string",
    "variants": "int64",
    "verified": "int64",
    "measured": "int64",
    "tied": "int64",
    "estimate_roofline_seconds": "double",
}


def find_winners(results: Sequence[Result]) -> tuple[Winner | NotMeasured, ...]:
    """One entry per kernel, workload, hardware and dtype, in the order in which they first appear."""
    return tuple(_winner(cell, several) for cell, several in by_cell(results).items())


def by_cell(results: Sequence[Result]) -> dict[Cell, list[Result]]:
    """The distinct variants that compete in each cell."""
    cells: dict[Cell, dict[str, Result]] = {}
    for result in results:
        task = result.task
        cell = Cell(kernel=task.kernel, workload=task.workload, hardware=task.hardware, dtype=task.dtype)
        distinct = cells.setdefault(cell, {})
        # Two optimizations may hold the same variant: it competes once, with its measurement if it has one,
        # and with the stricter verdict.
        known = distinct.get(result.id)
        if known is None or _merit(result) > _merit(known):
            distinct[result.id] = result
    return {cell: list(distinct.values()) for cell, distinct in cells.items()}


def _merit(result: Result) -> tuple[bool, bool]:
    return result.profiled is not None, not result.task.editing_only


def configuration(winner: Winner) -> str:
    """The tunables in one line."""
    return " ".join(f"{name}={value}" for name, value in winner.tunables.items())


class MeanSpeedup(Record, frozen=True, kw_only=True):
    """The winners of a kernel against a baseline, over the workloads that were measured."""

    kernel: str
    hardware: str
    dtype: str
    baseline: str
    workloads: int
    speedup: ConfidenceInterval
    """Geometric mean, and what other workloads of the same kind might have given."""
    faster: int
    slower: int


MANY = 8
"""Workloads from which on a mean over them says more than their rows."""


def mean_speedups(winners: Sequence[Winner]) -> list[MeanSpeedup]:
    """For each kernel and target with many workloads, and each baseline that was measured on all of them."""
    groups: dict[tuple[str, str, str], list[Winner]] = {}
    for winner in winners:
        groups.setdefault((winner.cell.kernel, winner.cell.hardware, winner.cell.dtype), []).append(winner)
    found = []
    for (kernel, hardware, dtype), several in groups.items():
        compared: dict[str, list[BaselineComparison]] = {}
        for each in (entry for winner in several for entry in winner.compared):
            compared.setdefault(each.baseline, []).append(each)
        for baseline, entries in compared.items():
            if len(entries) < max(len(several), MANY):
                continue
            verdicts = collections.Counter(entry.verdict for entry in entries)
            found.append(
                MeanSpeedup(
                    kernel=kernel,
                    hardware=hardware,
                    dtype=dtype,
                    baseline=baseline,
                    workloads=len(entries),
                    speedup=geometric_mean([[logarithm(entry.speedup)] for entry in entries]),
                    faster=verdicts["faster"],
                    slower=verdicts["slower"],
                )
            )
    return found


def winners_table(winners: Sequence[Winner | NotMeasured]) -> "pa.Table":
    """One row per cell; a cell without a measurement has a status and a reason, and no time."""
    schema = dict(WINNERS)
    for winner in winners:
        if isinstance(winner, Winner):
            for compared in winner.compared:
                schema |= _baseline_schema(compared.baseline)
    return row_table(schema, [_row(winner) for winner in winners])


def _winner(cell: Cell, results: list[Result]) -> Winner | NotMeasured:
    measured = [(result.profiled, result) for result in results if result.profiled]
    verified = sum(result.verified is not None for result in results)
    if not measured:
        return _not_measured(cell, results, verified)
    best, result = min(measured, key=lambda pair: pair[0].time.value)
    assert result.verify is not None and result.verified is not None
    return Winner(
        cell=cell,
        task=result.task.task,
        variant=result.id,
        implementation=result.variant.implementation,
        tunables=result.variant.tunables,
        written_by=author(result) or ("the declared source" if any(map(author, results)) else None),
        seconds=best.time,
        compared=_compared(best),
        absent=best.absent,
        flops_per_second=_rate(best.flops, best),
        bytes_per_second=_rate(best.bytes, best),
        roofline_share=best.roofline_share,
        bound=best.bound,
        level=best.ceilings.level if best.ceilings else None,
        where=result.verify.where,
        recorded=best.recorded,
        preset=result.task.preset,
        editing_only=result.task.editing_only,
        weak=result.verified.weak,
        variants=len(results),
        verified=verified,
        measured=len(measured),
        tied=sum(
            verdict(each.time.over(best.time), room_between(best, each)) == "indistinguishable"
            for each, _ in measured
            if each is not best
        ),
    )


def _rate(amount: float | None, profiled: Profiled) -> float | None:
    return None if amount is None else amount / profiled.time.value


def _compared(profiled: Profiled) -> tuple[BaselineComparison, ...]:
    return tuple(
        BaselineComparison(
            baseline=entry.baseline,
            seconds=profiled.baseline_time(entry),
            speedup=entry.speedup,
            verdict=entry.verdict,
        )
        for entry in profiled.comparisons
    )


def room_between(one: Profiled, other: Profiled) -> float:
    """Ratio up to which two variants may seem different by where their processes lie.

    The interval of their ratio must lie beyond it before one is called faster (`statistics.verdict`).
    """
    return 1 + (NEAR if one.timing.in_one_process or other.timing.in_one_process else RESOLUTION)


def _not_measured(cell: Cell, results: list[Result], verified: int) -> NotMeasured:
    return NotMeasured(
        cell=cell,
        reason=_why(results),
        variants=len(results),
        compiled=sum(result.compiled is not None for result in results),
        verified=verified,
        where=", ".join(sorted({result.verify.where for result in results if result.verify})) or None,
        estimate_roofline_seconds=estimate_roofline_seconds(results[0].task),
    )


def _why(results: list[Result]) -> str:
    outcomes = collections.Counter(result.outcome for result in results)
    if Outcome.DEVICE_UNAVAILABLE in outcomes:
        return "device unavailable"
    failures = {outcome: count for outcome, count in outcomes.most_common() if outcome is not Outcome.PASSED}
    return (
        ", ".join(counted_outcome(count, outcome) for outcome, count in failures.items())
        or "profile has not run"
    )


def _row(winner: Winner | NotMeasured) -> dict[str, object]:
    cell = winner.cell
    row: dict[str, object] = {
        "kernel": cell.kernel,
        "workload": cell.workload,
        "hardware": cell.hardware,
        "dtype": cell.dtype,
        "verify_where": winner.where,
        "variants": winner.variants,
        "verified": winner.verified,
    }
    if isinstance(winner, NotMeasured):
        row |= {"status": "not measured", "reason": winner.reason}
        return row | {"estimate_roofline_seconds": winner.estimate_roofline_seconds}
    row |= {name: getattr(winner, name) for name in WINNERS if hasattr(winner, name)}
    row |= {
        "status": "measured",
        "configuration": configuration(winner),
        "median_seconds": winner.seconds.value,
        "median_seconds_low": winner.seconds.low,
        "median_seconds_high": winner.seconds.high,
        "verify_preset": winner.preset,
        "verify_weak": " ".join(winner.weak),
    }
    for compared in winner.compared:
        speedup = compared.speedup
        values = (compared.seconds.value, speedup.value, speedup.low, speedup.high, compared.verdict)
        row |= dict(zip(_baseline_schema(compared.baseline), values, strict=True))
    return row


def _baseline_schema(name: str) -> dict[str, ColumnType]:
    return {
        f"baseline.{name}.seconds": "double",
        f"speedup.{name}": "double",
        f"speedup.{name}.low": "double",
        f"speedup.{name}.high": "double",
        f"verdict.{name}": "string",
    }
