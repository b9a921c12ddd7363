"""The least time of a call: work, rates and launch in, the time of each resource out, and the longest.

Every term is a lower bound by itself, so their largest is one; nothing is added up, because all may overlap.
Sources: bytes and operations: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009; bytes in flight
over latency: Little, "A Proof for the Queuing Formula L = lambda W", Operations Research 9(3), 1961, as
applied by Volkov, "Understanding Latency Hiding on GPUs", Berkeley, EECS-2016-143.
"""

from typing import Literal

from pipeline.performance.bound.geometry import Geometry
from pipeline.records.record import Record

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
    """Stores wait for nobody: only what is read has to be in flight."""
    if rates.latency is None or work.read is None or not launch.bytes_in_flight:
        return None
    return work.read * rates.latency / launch.bytes_in_flight
