"""The bounds of one variant: its result in, those from declared peaks and from measured ceilings out."""

from pipeline.analyze.bound.geometry import Block, Geometry, geometry
from pipeline.analyze.bound.least import Bound, Rates, Work, bandwidth_share, bound
from pipeline.analyze.collect import Result
from pipeline.analyze.roofline import latency_seconds, peak_rates
from pipeline.records.compiled import StaticFacts
from pipeline.records.profiled import Ceilings

_REGISTER = 4  # bytes
_FLOAT = 32  # bits
_HALF_RATE_BITS = 512
"""Processors with vectors of this width may issue half as many of them a cycle as narrower ones."""


def declared_bound(result: Result) -> Bound | None:
    """From the target's declared peaks and the launch's shape; None where a peak is not declared."""
    rates, work = _declared_rates(result), _work(result)
    return bound(work, rates, geometry_of(result)) if rates and work else None


def ceiling_bound(result: Result) -> Bound | None:
    """From the ceilings measured beside the variant, its vectors and its launch; None without them."""
    ceilings, work = result.profiled.ceilings if result.profiled else None, _work(result)
    if ceilings is None or work is None:
        return None
    rates = Rates(bandwidth=ceilings.cache_bandwidth, arithmetic=_arithmetic(result, ceilings))
    return bound(work, rates, geometry_of(result))


def declared_bandwidth_share(result: Result) -> float | None:
    """Share of the declared bandwidth that the variant's loads in flight can sustain (Little's law)."""
    rates, launch = _declared_rates(result), geometry_of(result)
    return bandwidth_share(rates, launch) if rates and launch else None


def geometry_of(result: Result) -> Geometry | None:
    """How the variant's launch spreads over the target; None on a CPU, and where a call launches several."""
    compiled, limits = result.compiled, result.task.limits
    if compiled is None or result.task.kind == "cpu" or len(compiled.functions) != 1:
        return None
    facts = compiled.facts
    if facts.threads_per_block is None:
        return None
    block = Block(
        threads=facts.threads_per_block,
        resident=_resident(facts, limits),
        bytes_in_flight=_bytes_in_flight(facts),
    )
    return geometry(limits, compiled.grid, block)


def vector_width(facts: StaticFacts) -> int | None:
    """Bits of the widest vectors in the code, 32 where it computes on single floats; None if not known."""
    if not facts.instructions or "vector_scalable" in facts.instructions or "dot" in facts.instructions:
        return None
    widths = [bits for bits in (512, 256, 128) if facts.instructions.get(f"vector_{bits}")]
    if widths:
        return widths[0]
    return _FLOAT if facts.instructions.get("scalar_float") else None


def _declared_rates(result: Result) -> Rates | None:
    bandwidth, arithmetic = peak_rates(result.task)
    if bandwidth is None or arithmetic is None:
        return None
    return Rates(bandwidth=bandwidth, arithmetic=arithmetic, latency=latency_seconds(result.task.peaks))


def _work(result: Result) -> Work | None:
    task = result.task
    if task.flops is None or task.bytes is None:
        return None
    return Work(flops=task.flops, bytes=task.bytes, read=task.read)


def _arithmetic(result: Result, ceilings: Ceilings) -> float:
    """FLOP/s that this code can reach at best: narrow vectors cannot fill the units that were measured."""
    task = result.task
    most = ceilings.vector_flops
    if task.unit == "matrix":
        most = max(most, ceilings.matrix_flops)
    available = task.limits.get("vector_bits")
    used = vector_width(result.compiled.facts) if result.compiled and task.kind == "cpu" else None
    if available is None or used is None or used >= available:
        return most
    issue = 2 if available >= _HALF_RATE_BITS else 1
    return min(most, ceilings.vector_flops * min(1.0, issue * used / available))


def _resident(facts: StaticFacts, limits: dict[str, int]) -> int | None:
    """As compile found it, or what the occupancy says of it."""
    if facts.resident_blocks is not None:
        return facts.resident_blocks
    warp, threads = limits.get("warp_size"), limits.get("threads_per_sm")
    if facts.occupancy_bound is None or facts.threads_per_block is None or not warp or not threads:
        return None
    return round(facts.occupancy_bound * (threads // warp) / -(-facts.threads_per_block // warp))


def _bytes_in_flight(facts: StaticFacts) -> int | None:
    """The most that one block's loads can have on the way.

    Instructions issue in order and a load's register waits for it, so no load of the code is twice in flight
    in one thread; copies past the registers end in shared memory.
    """
    mix = facts.instructions
    if not mix or facts.threads_per_block is None or facts.registers is None or facts.shared_memory is None:
        return None
    loads = sum(
        count * int(name.rpartition("_")[2]) // 8
        for name, count in mix.items()
        if name.startswith("load_global_")
    )
    per_thread = min(loads, facts.registers * _REGISTER)
    return facts.threads_per_block * per_thread + facts.shared_memory
