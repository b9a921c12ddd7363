"""What a call costs besides time, measured where it is made: batches in, energy, memory, counters out.

The last thing that a measuring child does: giving freed memory back to the system, which the peak of a call
needs, would make calls that are timed afterwards fault their pages in again. A candidate runs in this process
and could falsify every one of these; they inform, and no verdict rests on them.
"""

from collections.abc import Callable
from typing import TypeVar

from pipeline.backends.devices.energy import energy_of
from pipeline.backends.devices.peak_memory import peak_of
from pipeline.measure.counters import cpu
from pipeline.records.configuration.hardware import BackendKind
from pipeline.records.record import Record
from pipeline.records.results.profiled import Counters, Energy, Peak, Unmeasured

T = TypeVar("T", Energy, Counters)


class Examined(Record, frozen=True, kw_only=True, tag="examined"):
    """What was found of warm calls."""

    peak: Peak
    energy: Energy | None = None
    counters: Counters | None = None
    """Of the processor; a GPU's are `pipeline.measure.counters.cuda`'s."""
    unmeasured: tuple[Unmeasured, ...] = ()


def examine(
    batch: Callable[[int], object], calls: int, kind: BackendKind, energy_seconds: float | None
) -> Examined:
    """Peak memory of one call, energy and counters of batches of so many.

    `batch` runs that many warm calls to their end. The energy counter is watched for `energy_seconds`, up to
    four times as long where it advances slowly; None leaves energy out.
    """

    def one_batch() -> int:
        batch(calls)
        return calls

    peak = peak_of(lambda: batch(1), kind)
    unmeasured: list[Unmeasured] = []
    energy = None if energy_seconds is None else _kept(energy_of(kind, one_batch, energy_seconds), unmeasured)
    counters = _kept(cpu.count(one_batch), unmeasured) if kind == "cpu" else None
    return Examined(peak=peak, energy=energy, counters=counters, unmeasured=tuple(unmeasured))


def _kept(found: T | Unmeasured, unmeasured: list[Unmeasured]) -> T | None:
    if isinstance(found, Unmeasured):
        unmeasured.append(found)
        return None
    return found
