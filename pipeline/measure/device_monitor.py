"""Watches the device from the coordinating process while batches run; which of them it disturbed.

Use: `with Monitor.of(kind) as monitor:`, `look()` after each batch, and at the end `disturbances(looks)` and
`merged(looks)`. A candidate's process has no part in it.

Readings are taken at most once in `PERIOD`. A GPU is read by a thread of the host during the batches, for its
host does not compute meanwhile; a processor only within `look`, when no batch runs.
"""

import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Self

from pipeline.backends.devices.device import ConditionSource, NotAvailable
from pipeline.backends.devices.device_registry import device
from pipeline.backends.devices.disturbance import TOLERATED
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.results.profiled import Conditions, Unmeasured

PERIOD = 0.05  # seconds between two readings, at least
DROP = 0.05  # share by which a batch's clock may lie below the usual one
STEADY = 0.5  # share of the looks from which on a reason is the device's state, not a disturbance


class Monitor:
    """A context manager; without a source every look is empty, and `absent` says why."""

    def __init__(
        self,
        source: ConditionSource | NotAvailable,
        period: float = PERIOD,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = None if isinstance(source, NotAvailable) else source
        self.absent = (
            Unmeasured(quantity="conditions", reason=str(source))
            if isinstance(source, NotAvailable)
            else None
        )
        self._period = period
        self._clock = clock
        self._last: float | None = None
        self._readings: list[Conditions] = []
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    @classmethod
    def of(cls, kind: DeviceKind, uuid: str | None = None) -> Self:
        """Of a kind of device; of the GPU with this identity, or the first one."""
        try:
            return cls(device(kind).measurement().conditions(uuid))
        except NotAvailable as absent:
            return cls(absent)

    def __enter__(self) -> Self:
        if self._source is not None and self._source.beside:
            self._thread = threading.Thread(target=self._watch, name="monitor", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        if self._thread is not None:
            self._thread.join()
        if self._source is not None:
            self._source.close()

    def look(self) -> Conditions:
        """What was read since the last look; empty (`samples` is 0) where that was less than a period ago."""
        if self._source is not None and not self._source.beside:
            now = self._clock()
            if self._last is None or now - self._last >= self._period:
                self._last = now
                self._readings.append(self._source.read())
        with self._lock:
            readings, self._readings = self._readings, []
        return merged(readings)

    def _watch(self) -> None:
        assert self._source is not None
        while True:
            reading = self._source.read()
            with self._lock:
                self._readings.append(reading)
            if self._end.wait(self._period):
                return


def merged(looks: Sequence[Conditions]) -> Conditions:
    """All looks as one: extremes of clocks and temperature, means of power and steal, every reason."""
    return Conditions(
        clock_mhz_low=min(_given(look.clock_mhz_low for look in looks), default=None),
        clock_mhz_high=max(_given(look.clock_mhz_high for look in looks), default=None),
        memory_clock_mhz_low=min(_given(look.memory_clock_mhz_low for look in looks), default=None),
        temperature_celsius=max(_given(look.temperature_celsius for look in looks), default=None),
        watts=_mean([(look.watts, look.samples) for look in looks]),
        throttled=tuple(dict.fromkeys(reason for look in looks for reason in look.throttled)),
        performance_states=tuple(sorted({state for look in looks for state in look.performance_states})),
        stolen=_mean([(look.stolen, look.samples) for look in looks]),
        samples=sum(look.samples for look in looks),
    )


def disturbances(looks: Sequence[Conditions], drop: float = DROP) -> tuple[str | None, ...]:
    """For each batch why it should be repeated, from the look after it; None where nothing speaks against it.

    What holds in half of the looks or more is how the device runs at present: repeating would not help, and
    `notes` says it.
    """
    usual = _usual_clock(looks)
    steady = _steady(looks)
    return tuple(_disturbed(look, usual, steady, drop) for look in looks)


def notes(looks: Sequence[Conditions], drop: float = DROP) -> tuple[str, ...]:
    """What a reader of the result must know about the device, one sentence each."""
    seen = [look for look in looks if look.samples]
    counts = Counter(reason for look in seen for reason in look.throttled)
    found = [
        f"throttled: {reason} in {count} of {len(seen)} looks at the device"
        for reason, count in counts.items()
    ]
    clocks = _given(look.clock_mhz_low for look in seen)
    if clocks and min(clocks) < (1 - drop) * max(clocks):
        found.append(f"unsteady: the clock was between {min(clocks):.0f} and {max(clocks):.0f} MHz")
    stolen = merged(seen).stolen
    if stolen is not None and stolen > TOLERATED:
        found.append(f"disturbed: the host took {stolen:.0%} of the machine's CPU time")
    return tuple(found)


def _disturbed(look: Conditions, usual: float | None, steady: set[str], drop: float) -> str | None:
    passing = [reason for reason in look.throttled if reason not in steady]
    if passing:
        return f"throttled: {', '.join(passing)}"
    low = look.clock_mhz_low
    if usual is not None and low is not None and low < (1 - drop) * usual:
        return f"slow clock: {low:.0f} MHz, {1 - low / usual:.0%} below the usual {usual:.0f} MHz"
    if look.stolen is not None and look.stolen > TOLERATED:
        return f"the host took {look.stolen:.0%} of the machine's CPU time"
    return None


def _usual_clock(looks: Sequence[Conditions]) -> float | None:
    clocks = _given(look.clock_mhz_low for look in looks)
    return statistics.median(clocks) if clocks else None


def _steady(looks: Sequence[Conditions]) -> set[str]:
    seen = [look for look in looks if look.samples]
    counts = Counter(reason for look in seen for reason in look.throttled)
    return {reason for reason, count in counts.items() if len(seen) > 1 and count >= STEADY * len(seen)}


def _mean(pairs: Sequence[tuple[float | None, int]]) -> float | None:
    known = [(value, weight) for value, weight in pairs if value is not None]
    total = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / total if total else None


def _given(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
