"""What lies above the roofline: a result that cannot be true in, what may be wrong with it out."""

from typing import Literal

from pipeline.measure.ceilings.roofline_share import (
    OVER,
    WorkPerCall,
    compute_seconds,
    memory_seconds,
    peak,
    place,
)
from pipeline.records.record import Record
from pipeline.records.results.profiled import Ceilings

SAME = 0.02
"""Relative difference up to which the formula's bytes are those of the tensors."""


class Suspicion(Record, frozen=True, kw_only=True):
    """One thing that may be wrong."""

    cause: Literal["formula", "cache_resident", "skipped_work"]
    text: str
    """What speaks for it."""


def too_good(work: WorkPerCall, ceilings: Ceilings, seconds: float) -> str | None:
    """Why a result cannot be true, with what may be wrong, the likeliest first; None for one that can."""
    share = place(work, ceilings, seconds).share
    if share <= OVER:
        return None
    if memory_seconds(work, ceilings) >= compute_seconds(work, ceilings):
        limit = ceilings.cache_bandwidth
        done = f"{work.bytes / seconds / 1e9:.4g} GB/s where the device reaches {limit / 1e9:.4g}"
    else:
        limit = peak(work, ceilings)
        done = f"{work.flops / seconds / 1e9:.4g} GFLOP/s where the device reaches {limit / 1e9:.4g}"
    found = suspicions(work, ceilings, seconds)
    causes = "; ".join(f"({number}) {each.text}" for number, each in enumerate(found, 1))
    return f"{share:.2f} of the roofline: {done}. What may be wrong: {causes}"


def suspicions(work: WorkPerCall, ceilings: Ceilings, seconds: float) -> tuple[Suspicion, ...]:
    """What may be wrong, the likeliest first; always at least the formula and left-out work."""
    if memory_seconds(work, ceilings) >= compute_seconds(work, ceilings):
        return _of_memory(work, ceilings, seconds)
    return _of_compute(work)


def _of_memory(work: WorkPerCall, ceilings: Ceilings, seconds: float) -> tuple[Suspicion, ...]:
    rate = work.bytes / seconds
    counted = _counts_too_much(work)
    text = counted or "`cost.bytes` counts more than the call must move"
    formula = Suspicion(cause="formula", text=text)
    nearer = next((level for level in reversed(ceilings.levels) if rate <= OVER * level.bandwidth), None)
    if nearer is None:
        text = "work left out: no level of the memory delivers so fast"
        found = [Suspicion(cause="skipped_work", text=text)]
    else:
        stay = f"data that stay in caches between calls: {nearer.name} would deliver so fast"
        left = f"work left out: {ceilings.level or 'the memory'} cannot deliver all bytes so fast"
        found = [
            Suspicion(cause="cache_resident", text=stay),
            Suspicion(cause="skipped_work", text=left),
        ]
    return (formula, *found) if counted else (*found, formula)


def _of_compute(work: WorkPerCall) -> tuple[Suspicion, ...]:
    narrower = "a narrower type, " if work.unit == "matrix" else ""
    left = f"work left out, {narrower}or an algorithm with fewer operations"
    return (
        Suspicion(cause="skipped_work", text=left),
        Suspicion(cause="formula", text="`cost.flops` counts more than the call must compute"),
    )


def _counts_too_much(work: WorkPerCall) -> str | None:
    """The formula against the tensors, where these are known."""
    if work.tensor_bytes is None or work.bytes <= (1 + SAME) * work.tensor_bytes:
        return None
    return f"`cost.bytes` counts {work.bytes:.4g} bytes where inputs and outputs hold {work.tensor_bytes:.4g}"
