"""How near to the device's ceilings a call came, which of them bounds it, and what is too good to be true.

Roofline model (Williams, Waterman and Patterson 2009): the call cannot take less than its bytes at the
bandwidth, nor than its operations at the peak rate. In: the kernel's formulas, measured ceilings, seconds of
a call. Out: its share of the roofline; of a share that cannot be true, the possible causes.
"""

import math
import re
from typing import Literal

from pipeline.records.formula import ELEMENT_BYTES, evaluate_number
from pipeline.records.planning.specs import ProfileSpec
from pipeline.records.record import Record
from pipeline.records.results.profiled import Bound, Ceilings

OVER = 1.1
"""Share above which a result is not believed: the ceilings themselves are known to a few percent."""


CLOSE = 0.5
"""Share of a call that a call which does nothing takes, from which on it is what bounds the call: nothing
that is done inside could make it twice as fast."""


class Place(Record, frozen=True, kw_only=True):
    """Where a call lies under the roofline."""

    share: float
    """Roofline time over measured time: 1 is the ceiling."""
    bound: Bound


class WorkPerCall(Record, frozen=True, kw_only=True):
    """What one call has to do, by the kernel's formulas."""

    flops: float
    read: float
    """Bytes that it must read,"""
    written: float
    """and write."""
    unit: Literal["matrix", "vector"]
    dtype: str
    tensor_bytes: float | None = None
    """Bytes of its inputs and outputs as declared; the formula may count more or less."""

    @property
    def bytes(self) -> float:
        """Compulsory traffic."""
        return self.read + self.written


def place(work: WorkPerCall, ceilings: Ceilings, seconds: float) -> Place:
    """Share of the roofline of a call that took so many seconds, and which ceiling is the nearest.

    The launch latency is none of the roofline's: a call that comes close to it may be as good as can be and
    have a small share.
    """
    memory, compute = memory_seconds(work, ceilings), compute_seconds(work, ceilings)
    bound: Bound = "memory" if memory >= compute else "compute"
    launch = ceilings.launch_seconds or 0.0
    if launch > max(memory, compute) and launch >= CLOSE * seconds:
        bound = "latency"
    return Place(share=max(memory, compute) / seconds, bound=bound)


def memory_seconds(work: WorkPerCall, ceilings: Ceilings) -> float:
    """Least time for the bytes, from the level that holds them."""
    return work.bytes / ceilings.cache_bandwidth


def compute_seconds(work: WorkPerCall, ceilings: Ceilings) -> float:
    """Least time for the operations."""
    return work.flops / ceilings.peak(work.unit)


def work_of(spec: ProfileSpec) -> WorkPerCall:
    """The formula's bytes are split like the tensors' sizes."""
    problem = spec.problem
    assert spec.cost.flops is not None and spec.cost.bytes is not None  # the plan asks for them
    names = {**problem.attributes, **problem.dimensions, "itemsize": ELEMENT_BYTES[problem.element]}
    size = {name: math.prod(problem.shape(name)) for name in problem.tensors}
    held = sum(size[name] * _itemsize(tensor.dtype) for name, tensor in problem.tensors.items())
    total = evaluate_number(spec.cost.bytes, names)
    return WorkPerCall(
        flops=evaluate_number(spec.cost.flops, names),
        read=problem.input_share * total,
        written=(1 - problem.input_share) * total,
        unit=spec.cost.unit,
        dtype=spec.cost.products or problem.element,
        tensor_bytes=held,
    )


def _itemsize(dtype: str) -> int:
    """Bytes of one element: torch's names carry the bits, all but `bool`."""
    bits = re.search(r"\d+", dtype)
    return int(bits[0]) // 8 if bits else 1


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
        limit = ceilings.peak(work.unit)
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
