"""Conditions and energy of the processors: Linux's files on clocks, heat, throttling, steal, power."""

import time
from collections.abc import Iterable
from pathlib import Path

from pipeline.backends.devices import disturbance
from pipeline.backends.devices.device import NotAvailable
from pipeline.records.results.profiled import Conditions

CPUS = Path("/sys/devices/system/cpu")
HWMON = Path("/sys/class/hwmon")
THERMAL = Path("/sys/class/thermal")
POWERCAP = Path("/sys/class/powercap")
SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")  # drivers of processors' own sensors
ZONES = ("x86_pkg_temp", "cpu")  # how zones of the processor begin
_COUNTERS = {  # of thermal_throttle/ (Intel) -> in words; each counts events since the machine started
    "core_throttle_count": "thermal throttling of a core",
    "package_throttle_count": "thermal throttling of the package",
    "core_power_limit_count": "power limit of a core",
    "package_power_limit_count": "power limit of the package",
}


class LinuxSource:
    """Reads the cores in use; a reading takes some ten microseconds a core.

    The frequency that Linux tells on x86 is the mean over the last scheduler tick in which the core was busy,
    at most 20 ms ago: read right after a batch, it is the batch's.
    """

    beside = False
    """A reading needs a core: none may be taken while the cores are timed."""

    def __init__(self, cores: Iterable[int]) -> None:
        self._frequencies = [
            path for core in cores if (path := CPUS / f"cpu{core}/cpufreq/scaling_cur_freq").exists()
        ]
        self._sensors = _sensors()
        self._counters = _throttle_counters(cores)
        self._seen = {path: _number(path) for path in self._counters}
        self._load = disturbance.load()
        self._moment = time.monotonic()
        self._meter, self._why_no_power = _meter()
        self._joules = self._meter.joules() if self._meter else 0.0

    def read(self) -> Conditions:
        """What is now, and what happened since the last reading."""
        clocks = [value * 1e-3 for path in self._frequencies if (value := _number(path))]  # from kHz
        heat = [value * 1e-3 for path in self._sensors if (value := _number(path)) is not None]
        return Conditions(
            clock_mhz_low=min(clocks, default=None),
            clock_mhz_high=max(clocks, default=None),
            temperature_celsius=max(heat, default=None),
            watts=self._watts(),
            throttled=self._throttled(),
            stolen=self._stolen(),
            samples=1,
        )

    def lines(self) -> dict[str, str]:
        """Every quantity -> its value now with its unit, or why it is absent."""
        time.sleep(2 * disturbance.SHORTEST)  # power and steal are differences
        start = time.perf_counter()
        now = self.read()
        cost = time.perf_counter() - start
        return {
            "clock": _shown(now.clock_mhz_low, "MHz, slowest core in use", _why_no_clock()),
            "temperature": _shown(now.temperature_celsius, "°C", _why_no_heat()),
            "power": _shown(now.watts, "W", self._why_no_power),
            "energy counter": self._meter.source if self._meter else f"absent: {self._why_no_power}",
            "slowed by": ", ".join(now.throttled) or "nothing since the start of this command"
            if self._counters
            else f"absent: no {CPUS}/cpu*/thermal_throttle (Intel only, not in virtual machines)",
            "stolen by the host": _shown(now.stolen, "of the machine's time", "/proc/stat does not tell"),
            "cost of a reading": f"{cost * 1e6:.0f} µs",
        }

    def close(self) -> None:
        """Nothing is held."""

    def _throttled(self) -> tuple[str, ...]:
        """Which counters have risen."""
        reasons: dict[str, None] = {}
        for path, before in self._seen.items():
            now = _number(path)
            if now is not None and before is not None and now > before:
                reasons[self._counters[path]] = None
            self._seen[path] = now
        return tuple(reasons)

    def _stolen(self) -> float | None:
        """Below the resolution of the kernel's clock the earlier reading stays the one to compare with."""
        now = disturbance.load()
        found = disturbance.disturbance(self._load, now, own_seconds=0.0)
        if found is None:
            return None
        self._load = now
        return found.stolen

    def _watts(self) -> float | None:
        if self._meter is None:
            return None
        try:
            joules, moment = self._meter.joules(), time.monotonic()
        except NotAvailable:
            return None
        spent, seconds = joules - self._joules, moment - self._moment
        self._joules, self._moment = joules, moment
        return spent / seconds if seconds > 0 else None


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
        names = dict.fromkeys(_text(domain / "name").partition("-")[0] for domain in domains)
        self.source = f"rapl:{'+'.join(names)}"

    def joules(self) -> float:
        """Of all packages since this meter was made."""
        for place, domain in enumerate(self._domains):
            now = _microjoules(domain)
            step = now - self._last[place]
            self._total += step if step >= 0 else step + self._ranges[place]
            self._last[place] = now
        return self._total * 1e-6


def _meter() -> tuple[RaplMeter | None, str]:
    try:
        return RaplMeter(), ""
    except NotAvailable as absent:
        return None, str(absent)


def _sensors() -> tuple[Path, ...]:
    """The processor's own sensors; where there is none, the zones that are called after it."""
    chips = [folder for folder in sorted(HWMON.glob("hwmon*")) if _text(folder / "name") in SENSORS]
    found = tuple(path for folder in chips for path in sorted(folder.glob("temp*_input")))
    zones = sorted(THERMAL.glob("thermal_zone*"))
    return found or tuple(zone / "temp" for zone in zones if _text(zone / "type").startswith(ZONES))


def _throttle_counters(cores: Iterable[int]) -> dict[Path, str]:
    paths = {
        CPUS / f"cpu{core}/thermal_throttle/{name}": words
        for core in cores
        for name, words in _COUNTERS.items()
    }
    return {path: words for path, words in paths.items() if path.exists()}


def _why_no_clock() -> str:
    """The MHz of /proc/cpuinfo are no way out: without cpufreq they are a constant."""
    return f"no {CPUS}/cpu*/cpufreq: virtual machines rarely have it"


def _why_no_heat() -> str:
    return f"no sensor of {', '.join(SENSORS)} in {HWMON}, no zone of a processor in {THERMAL}"


def _shown(value: float | None, unit: str, why_not: str) -> str:
    return f"absent: {why_not}" if value is None else f"{value:.4g} {unit}"


def _number(path: Path) -> float | None:
    text = _text(path)
    return float(text) if text.lstrip("-").isdecimal() else None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _domains(powercap: Path) -> list[Path]:
    """Packages, and memory; cores are in their package, and `-mmio` repeats it."""
    if not powercap.is_dir():
        raise NotAvailable(f"{powercap} is not here: a virtual machine, or no module intel_rapl_msr")
    found = sorted(powercap.glob("intel-rapl:*"))
    domains = [folder for folder in found if _text(folder / "name").startswith(("package", "dram"))]
    if not domains:
        raise NotAvailable(f"{powercap} has no domain intel-rapl:* of a package")
    return domains


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
