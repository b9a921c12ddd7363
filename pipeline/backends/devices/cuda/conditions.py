"""Conditions and energy of an NVIDIA GPU: NVML in, readings out."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Literal, TypeVar

from pipeline.backends.devices.cuda.nvml import Nvml, NvmlDevice
from pipeline.backends.devices.device import NotAvailable
from pipeline.records.results.profiled import Conditions

T = TypeVar("T")


class NvmlSource:
    """Reads the device that this process uses, or one by its identity; a reading takes about a millisecond.

    Clocks of a device that idles are left out: it has lowered them itself.
    """

    beside = True
    """Readings may be taken while the device computes: they run on the host."""

    def __init__(self, uuid: str | None = None) -> None:
        self._nvml = Nvml()
        self._device = self._nvml.device(uuid)

    def read(self) -> Conditions:
        """One reading; what the device does not tell is absent in it."""
        device = self._device
        reasons, idle = _value(device.slowdowns) or ((), False)
        clock = None if idle else _value(lambda: device.clock_mhz("sm"))
        state = _value(device.performance_state)
        return Conditions(
            clock_mhz_low=clock,
            clock_mhz_high=clock,
            memory_clock_mhz_low=None if idle else _value(lambda: device.clock_mhz("memory")),
            temperature_celsius=_value(device.temperature),
            watts=_value(device.watts),
            throttled=() if idle else reasons,
            performance_states=() if state is None or idle else (state,),
            samples=1,
        )

    def lines(self) -> dict[str, str]:
        """Every quantity -> its value now with its unit, or why it is absent."""
        device = self._device
        others = {"other processes": lambda: " ".join(map(str, device.processes())) or "none"}
        return {name: _line(ask) for name, ask in (_questions(device) | others).items()}

    def close(self) -> None:
        """Let go of the library."""
        self._nvml.close()


class NvmlMeter:
    """NVML's counter of the whole board, in steps of 1 mJ; a device that has none is found here."""

    source = "nvml"

    def __init__(self, device: NvmlDevice) -> None:
        if device.sliced:
            raise NotAvailable("a slice of a device (MIG): the counter is the whole device's")
        self._device = device
        self.joules()

    def joules(self) -> float:
        """Since the driver was loaded."""
        return self._device.joules()


@contextlib.contextmanager
def open_meter() -> Iterator[NvmlMeter]:
    """The energy counter of the device that this process uses."""
    with Nvml() as nvml:
        yield NvmlMeter(nvml.device())


def limits() -> dict[str, str]:
    """Power limit (W) and the highest clocks (MHz) of every NVIDIA device; empty without the library."""
    try:
        with Nvml() as nvml:
            return {"limits": "; ".join(_device_limits(device) for device in nvml.all_devices())}
    except NotAvailable:
        return {}


def _device_limits(device: NvmlDevice) -> str:
    parts = []
    with contextlib.suppress(NotAvailable):
        parts.append(f"power {device.power_limit():g}")
    clocks: tuple[Literal["graphics", "memory"], ...] = ("graphics", "memory")
    for clock in clocks:
        for read in (device.application_clock_mhz, device.highest_clock_mhz):
            with contextlib.suppress(NotAvailable):
                parts.append(f"{clock} {read(clock):g}")
    return " ".join(parts)


def _questions(device: NvmlDevice) -> dict[str, Callable[[], str]]:
    return {
        "device": device.name,
        "identity": device.uuid,
        "clock": lambda: f"{device.clock_mhz('sm'):.0f} of {device.highest_clock_mhz('sm'):.0f} MHz",
        "memory clock": lambda: f"{device.clock_mhz('memory'):.0f} MHz",
        "temperature": lambda: f"{device.temperature():.0f} °C",
        "power": lambda: f"{device.watts():.1f} of {device.power_limit():.0f} W",
        "energy counter": lambda: f"{device.joules():.3f} J" + " (whole device)" * device.sliced,
        "slowed by": lambda: _slowdowns(device),
        "performance state": lambda: f"P{device.performance_state()}",
        "driver persistent": lambda: "yes" if device.persistent() else "no",
        "cost of a reading": lambda: f"{_cost(device) * 1e3:.2f} ms",
    }


def _slowdowns(device: NvmlDevice) -> str:
    reasons, idle = device.slowdowns()
    return ", ".join((*reasons, *(("idle",) if idle else ()))) or "nothing"


def _cost(device: NvmlDevice) -> float:
    start = time.perf_counter()
    device.clock_mhz("sm"), device.temperature(), device.watts(), device.slowdowns()
    return time.perf_counter() - start


def _value(ask: Callable[[], T]) -> T | None:
    try:
        return ask()
    except NotAvailable:
        return None


def _line(ask: Callable[[], str]) -> str:
    try:
        return ask()
    except NotAvailable as absent:
        return f"absent: {absent}"
