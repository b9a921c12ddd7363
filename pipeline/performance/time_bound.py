"""Estimated lower bounds of a call's time: work, rates and launch in, the bound and its terms out.

Apart from results, so that a stage which has no result yet can compare a binary with its bound.
"""

import math
from collections.abc import Mapping
from typing import Literal

from pipeline.backends.devices.device_registry import executes_on_host
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.record import Record
from pipeline.records.results.compiled import Compiled, StaticFacts


class Block(Record, frozen=True, kw_only=True):
    """One block of a launch."""

    threads: int
    resident: int | None = None
    """Blocks that one multiprocessor holds at once; None where it is not known."""
    bytes_in_flight: int | None = None
    """The most that its loads can have on the way at once; None where it is not known."""


class Geometry(Record, frozen=True, kw_only=True):
    """A launch on a device."""

    blocks: int
    multiprocessors: int
    warp_size: int
    block: Block

    @property
    def busiest(self) -> int:
        """Blocks that the multiprocessor with the most of them works through."""
        return -(-self.blocks // self.multiprocessors)

    @property
    def balance(self) -> float:
        """Mean over busiest multiprocessor: the share of the device's arithmetic that even blocks can use."""
        return self.blocks / (self.busiest * self.multiprocessors)

    @property
    def lanes(self) -> float:
        """Threads over the lanes of the warps that hold them."""
        return self.block.threads / (self._warps * self.warp_size)

    @property
    def wave(self) -> int | None:
        """Blocks that the device holds at once."""
        return self.block.resident * self.multiprocessors if self.block.resident else None

    @property
    def waves(self) -> int | None:
        """How often the device is filled until all blocks have run."""
        return -(-self.blocks // self.wave) if self.wave else None

    @property
    def last_wave(self) -> float | None:
        """How full the last wave is."""
        if self.wave is None or self.waves is None:
            return None
        return self.blocks / self.wave - (self.waves - 1)

    @property
    def wave_efficiency(self) -> float | None:
        """Blocks over the places of all waves."""
        return self.blocks / (self.waves * self.wave) if self.wave and self.waves else None

    @property
    def bytes_in_flight(self) -> float | None:
        """The most that all loads of the device can have on the way at once."""
        if self.wave is None or self.block.bytes_in_flight is None:
            return None
        return float(min(self.blocks, self.wave) * self.block.bytes_in_flight)

    @property
    def _warps(self) -> int:
        return -(-self.block.threads // self.warp_size)


def geometry(limits: Mapping[str, int], grid: tuple[int, ...] | None, block: Block) -> Geometry | None:
    """The launch; None where the grid or the number of multiprocessors is not known."""
    count, warp = limits.get("sm_count"), limits.get("warp_size")
    blocks = math.prod(grid) if grid else 0
    if not count or not warp or blocks < 1 or block.threads < 1:
        return None
    return Geometry(blocks=blocks, multiprocessors=count, warp_size=warp, block=block)


TermName = Literal["memory", "latency", "compute", "spread"]
"""`spread`: the operations of the busiest multiprocessor, in the lanes that its warps fill."""


class LeastWork(Record, frozen=True, kw_only=True):
    """What a call has to do, by the kernel's formulas."""

    flops: float
    bytes: float
    read: float | None = None
    """Of these bytes, those that must be read; None where it is not known."""


class Rates(Record, frozen=True, kw_only=True):
    """What a device can do."""

    bandwidth: float
    """Bytes per second."""
    arithmetic: float
    """FLOP/s of the unit that does the work."""
    latency: float | None = None
    """Seconds from a load to its data; None where no source gives it."""


class BoundTerm(Record, frozen=True, kw_only=True):
    """One resource."""

    name: TermName
    seconds: float


class Bound(Record, frozen=True, kw_only=True):
    """An estimate: no call can be faster."""

    terms: tuple[BoundTerm, ...]
    """Those that could be derived; memory and compute always."""

    @property
    def longest(self) -> BoundTerm:
        """The term that decides; of equal ones the first."""
        return max(self.terms, key=lambda term: term.seconds)

    @property
    def seconds(self) -> float:
        """The bound."""
        return self.longest.seconds

    @property
    def side(self) -> Literal["memory", "compute"]:
        """What one has to improve to lower it."""
        return "memory" if self.longest.name in ("memory", "latency") else "compute"

    def gain_without(self, name: TermName) -> float | None:
        """How many times lower the bound is without one term; None where that term does not decide."""
        if self.longest.name != name:
            return None
        return self.seconds / max(term.seconds for term in self.terms if term.name != name)

    def of(self, name: TermName) -> float | None:
        """Seconds of one term."""
        return next((term.seconds for term in self.terms if term.name == name), None)


def bound(work: LeastWork, rates: Rates, launch: Geometry | None = None) -> Bound:
    """The terms that are known: with a launch, also what its shape costs."""
    memory = work.bytes / rates.bandwidth
    compute = work.flops / rates.arithmetic
    terms = [BoundTerm(name="memory", seconds=memory), BoundTerm(name="compute", seconds=compute)]
    if launch is not None:
        terms.append(BoundTerm(name="spread", seconds=compute / (launch.balance * launch.lanes)))
        latency = _latency(work, rates, launch)
        if latency is not None:
            terms.append(BoundTerm(name="latency", seconds=latency))
    return Bound(terms=tuple(terms))


def bandwidth_share(rates: Rates, launch: Geometry) -> float | None:
    """Share of the bandwidth that the loads in flight can sustain (Little's law); None without a latency."""
    if rates.latency is None or launch.bytes_in_flight is None:
        return None
    return min(1.0, launch.bytes_in_flight / (rates.latency * rates.bandwidth))


def _latency(work: LeastWork, rates: Rates, launch: Geometry) -> float | None:
    """Nothing waits for stores: only reads have to be in flight."""
    if rates.latency is None or work.read is None or not launch.bytes_in_flight:
        return None
    return work.read * rates.latency / launch.bytes_in_flight


_REGISTER = 4  # bytes
_FLOAT = 32  # bits
_HALF_RATE_BITS = 512
"""Processors with vectors of this width may issue half as many of them a cycle as narrower ones."""


class BoundDevice(Record, frozen=True, kw_only=True):
    """What runs the call, and which of its units."""

    kind: DeviceKind
    unit: str
    """`matrix` or `vector`."""
    limits: dict[str, int]


def launch_of(compiled: Compiled, device: BoundDevice) -> Geometry | None:
    """How the launch spreads over the target; None on a CPU, and where a call launches several."""
    facts = compiled.facts
    if executes_on_host(device.kind) or len(compiled.functions) != 1 or facts.threads_per_block is None:
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
    used = vector_width(facts) if facts is not None and executes_on_host(device.kind) else None
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
