"""What a binary's bound rests on: static facts and the device's figures in, launch and arithmetic out.

Apart from results, so that a stage which has no result yet can hold a binary against its bound.
"""

from collections.abc import Mapping

from pipeline.performance.bound.geometry import Block, Geometry, geometry
from pipeline.records.configuration.hardware import BackendKind
from pipeline.records.record import Record
from pipeline.records.results.compiled import Compiled, StaticFacts

_REGISTER = 4  # bytes
_FLOAT = 32  # bits
_HALF_RATE_BITS = 512
"""Processors with vectors of this width may issue half as many of them a cycle as narrower ones."""


class BoundDevice(Record, frozen=True, kw_only=True):
    """What runs the call, and which of its units."""

    kind: BackendKind
    unit: str
    """`matrix` or `vector`."""
    limits: dict[str, int]


def launch_of(compiled: Compiled, device: BoundDevice) -> Geometry | None:
    """How the launch spreads over the target; None on a CPU, and where a call launches several."""
    facts = compiled.facts
    if device.kind == "cpu" or len(compiled.functions) != 1 or facts.threads_per_block is None:
        return None
    block = Block(
        threads=facts.threads_per_block,
        resident=_resident(facts, device.limits),
        bytes_in_flight=_bytes_in_flight(facts),
    )
    return geometry(device.limits, compiled.grid, block)


def reachable_flops(
    facts: StaticFacts | None, device: BoundDevice, *, vector_flops: float, matrix_flops: float
) -> float:
    """FLOP/s that this code can reach at best: narrow vectors cannot fill the units that were measured."""
    most = max(vector_flops, matrix_flops) if device.unit == "matrix" else vector_flops
    available = device.limits.get("vector_bits")
    used = vector_width(facts) if facts is not None and device.kind == "cpu" else None
    if available is None or used is None or used >= available:
        return most
    issue = 2 if available >= _HALF_RATE_BITS else 1
    return min(most, vector_flops * min(1.0, issue * used / available))


def vector_width(facts: StaticFacts) -> int | None:
    """Bits of the widest vectors in the code, 32 where it computes on single floats; None if not known."""
    if not facts.instructions or "vector_scalable" in facts.instructions or "dot" in facts.instructions:
        return None
    widths = [bits for bits in (512, 256, 128) if facts.instructions.get(f"vector_{bits}")]
    if widths:
        return widths[0]
    return _FLOAT if facts.instructions.get("scalar_float") else None


def _resident(facts: StaticFacts, limits: Mapping[str, int]) -> int | None:
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
