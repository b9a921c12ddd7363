"""What a call costs besides time, measured where it is made: batches in, energy, memory, counters out.

The last thing that a measuring child does: giving freed memory back to the system, which the peak of a call
needs, would make calls that are timed afterwards fault their pages in again. A candidate runs in this process
and could falsify every one of these; they inform, and no verdict rests on them.

Energy counters advance in steps (NVML: 20 to 100 ms, RAPL: about 1 ms) that no interface announces. So the
clock runs from one step of the counter to another: what is reported is the energy between two steps, over the
calls between the same two. Each step is seen one batch late at most.
"""

import time
from collections.abc import Callable
from typing import TypeVar

from pipeline.backends.devices.device import DeviceMeasurement, EnergyMeter, NotAvailable
from pipeline.records.record import Record
from pipeline.records.results.profiled import Counters, Energy, Peak, Unmeasured

T = TypeVar("T", Energy, Counters)

SECONDS = 0.5  # that the counter is watched, at least
LONGEST_WATCH = 4.0  # times these seconds: a counter that advances too rarely is given up
FEWEST_STEPS = 4


class Examined(Record, frozen=True, kw_only=True, tag="examined"):
    """What was found of warm calls."""

    peak: Peak
    energy: Energy | None = None
    counters: Counters | None = None
    """Counted in the process itself; those of a profiler come from `DeviceMeasurement.count_process`."""
    unmeasured: tuple[Unmeasured, ...] = ()


def examine(
    batch: Callable[[int], object], calls: int, device: DeviceMeasurement, energy_seconds: float | None
) -> Examined:
    """Peak memory of one call, energy and counters of batches of so many.

    `batch` runs that many warm calls to their end. The energy counter is watched for `energy_seconds`, up to
    four times as long if it advances slowly; None leaves energy out.
    """

    def one_batch() -> int:
        batch(calls)
        return calls

    peak = device.peak_memory(lambda: batch(1))
    unmeasured: list[Unmeasured] = []
    energy = (
        None if energy_seconds is None else _kept(energy_of(device, one_batch, energy_seconds), unmeasured)
    )
    counters = _kept(device.count_calls(one_batch), unmeasured)
    return Examined(peak=peak, energy=energy, counters=counters, unmeasured=tuple(unmeasured))


def _kept(found: T | Unmeasured | None, unmeasured: list[Unmeasured]) -> T | None:
    if isinstance(found, Unmeasured):
        unmeasured.append(found)
        return None
    return found


def energy_of(
    device: DeviceMeasurement, batch: Callable[[], int], seconds: float = SECONDS
) -> Energy | Unmeasured:
    """Energy per call, on the device that this process uses; `batch` as for `metered`."""
    try:
        with device.energy_meter() as meter:
            return metered(meter, batch, seconds)
    except NotAvailable as absent:
        return Unmeasured(quantity="energy", reason=str(absent))


def metered(
    meter: EnergyMeter,
    batch: Callable[[], int],
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.perf_counter,
) -> Energy | Unmeasured:
    """Run batches until the counter has been watched for so long.

    `batch` runs some calls to their end, within a few tens of milliseconds, and returns how many. It is to be
    warm: the clock rate and the temperature of the first batches count as much as those of the last.
    """
    began = clock()
    steps = [_Step(moment=began, joules=meter.joules(), calls=0)]
    calls = 0
    while not _enough(steps, seconds):
        if clock() - began > LONGEST_WATCH * seconds:
            break
        calls += batch()
        joules = meter.joules()
        if joules != steps[-1].joules:
            steps.append(_Step(moment=clock(), joules=joules, calls=calls))
    return _energy(meter.source, steps[1:], clock() - began)


class _Step(Record, frozen=True, kw_only=True):
    moment: float
    joules: float
    calls: int


def _enough(steps: list[_Step], seconds: float) -> bool:
    """The first entry is no step: the counter may have stood there for long."""
    return len(steps) > FEWEST_STEPS and steps[-1].moment - steps[1].moment >= seconds


def _energy(source: str, steps: list[_Step], watched: float) -> Energy | Unmeasured:
    if len(steps) < FEWEST_STEPS:
        reason = (
            f"{source}: got {len(steps)} steps of the counter in {watched:.2g} s, expected {FEWEST_STEPS}"
        )
        return Unmeasured(quantity="energy", reason=reason)
    first, last = steps[0], steps[-1]
    calls, joules, seconds = last.calls - first.calls, last.joules - first.joules, last.moment - first.moment
    return Energy(
        joules=joules / calls,
        watts=joules / seconds,
        seconds=seconds,
        calls=calls,
        updates=len(steps) - 1,
        source=source,
    )
