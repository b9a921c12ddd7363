"""Energy of one call: batches of calls beside the device's own energy counter in, joules per call out.

The counters advance in steps (NVML: 20 to 100 ms, RAPL: about 1 ms) that no interface announces. So the clock
runs from one step of the counter to another: what is reported is the energy between two steps, over the calls
between the same two. Each step is seen one batch late at most.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from pipeline.backends.devices.cuda.nvml import NotAvailable, Nvml, NvmlDevice
from pipeline.records.configuration.hardware import BackendKind
from pipeline.records.record import Record
from pipeline.records.results.profiled import Energy, Unmeasured

POWERCAP = Path("/sys/class/powercap")
SECONDS = 0.5  # that the counter is watched, at least
PATIENCE = 4.0  # times these seconds: a counter that advances too rarely is given up
FEWEST_STEPS = 4


class Meter(Protocol):
    """A counter of energy."""

    source: str

    def joules(self) -> float:
        """Since any moment in the past; never less than before.

        Raises
        ------
        NotAvailable
            The counter cannot be read any more.
        """
        ...


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


class RaplMeter:
    """The processors' running average power limit counters (Intel, AMD): packages, and memory where counted.

    Source: https://docs.kernel.org/power/powercap/powercap.html. Counters wrap around at
    `max_energy_range_uj`, after some minutes at full power: `joules` must be asked more often than that.
    """

    def __init__(self, powercap: Path | None = None) -> None:
        domains = _domains(POWERCAP if powercap is None else powercap)
        self._domains = tuple(domains)
        self._last = [_microjoules(domain) for domain in domains]
        self._ranges = [_range(domain) for domain in domains]
        self._total = 0
        names = dict.fromkeys(_name(domain).partition("-")[0] for domain in domains)
        self.source = f"rapl:{'+'.join(names)}"

    def joules(self) -> float:
        """Of all packages since this meter was made."""
        for place, domain in enumerate(self._domains):
            now = _microjoules(domain)
            step = now - self._last[place]
            self._total += step if step >= 0 else step + self._ranges[place]
            self._last[place] = now
        return self._total * 1e-6


def open_meter(kind: BackendKind, nvml: Nvml | None) -> Meter:
    """The counter of a kind of device; `nvml` is open where the kind is cuda.

    Raises
    ------
    NotAvailable
        There is none, or it may not be read: the text says which and what to do.
    """
    if kind == "cpu":
        return RaplMeter()
    if kind == "hip":
        raise NotAvailable("energy of AMD GPUs is not read")
    return NvmlMeter((nvml or Nvml()).device())


def energy_of(kind: BackendKind, batch: Callable[[], int], seconds: float = SECONDS) -> Energy | Unmeasured:
    """Energy per call, on the device that this process uses; `batch` as for `metered`."""
    try:
        if kind == "cuda":
            with Nvml() as nvml:
                return metered(open_meter(kind, nvml), batch, seconds)
        return metered(open_meter(kind, None), batch, seconds)
    except NotAvailable as absent:
        return Unmeasured(quantity="energy", reason=str(absent))


def metered(
    meter: Meter,
    batch: Callable[[], int],
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.perf_counter,
) -> Energy | Unmeasured:
    """Run batches until the counter has been watched for so long.

    `batch` runs some calls to their end, in at most some ten milliseconds, and returns how many. It is to be
    warm: the clock rate and the temperature of the first batches count as much as those of the last.
    """
    began = clock()
    steps = [_Step(moment=began, joules=meter.joules(), calls=0)]
    calls = 0
    while not _enough(steps, seconds):
        if clock() - began > PATIENCE * seconds:
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


def _domains(powercap: Path) -> list[Path]:
    """Packages, and the memory beside them; cores are in their package, and `-mmio` repeats it."""
    if not powercap.is_dir():
        raise NotAvailable(f"{powercap} is not here: a virtual machine, or no module intel_rapl_msr")
    found = sorted(powercap.glob("intel-rapl:*"))
    domains = [folder for folder in found if _name(folder).startswith(("package", "dram"))]
    if not domains:
        raise NotAvailable(f"{powercap} has no domain intel-rapl:* of a package")
    return domains


def _name(domain: Path) -> str:
    try:
        return (domain / "name").read_text().strip()
    except OSError:
        return ""


def _microjoules(domain: Path) -> int:
    path = domain / "energy_uj"
    try:
        return int(path.read_text())
    except PermissionError:
        raise NotAvailable(f"{path} may not be read: sudo chmod a+r {path}, until the next start") from None
    except (OSError, ValueError) as error:
        raise NotAvailable(f"{path} cannot be read: {error}") from None


def _range(domain: Path) -> int:
    try:
        return int((domain / "max_energy_range_uj").read_text())
    except (OSError, ValueError) as error:
        raise NotAvailable(f"{domain / 'max_energy_range_uj'} cannot be read: {error}") from None
