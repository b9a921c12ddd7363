"""How calls are timed and observed on the processors of the host."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from pipeline.backends.devices.cpu import counters
from pipeline.backends.devices.cpu.conditions import LinuxSource, RaplMeter
from pipeline.backends.devices.cpu.processor import usable_cores
from pipeline.backends.devices.cpu.timer import CpuTimer, raise_priority
from pipeline.backends.devices.device import Call, DeviceMeasurement
from pipeline.backends.devices.device_ceilings import DeviceCeilings
from pipeline.backends.devices.machine_state import machine_state
from pipeline.backends.devices.peak_memory import NEVER_TRIMMED, host_peak
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.errors import ToolchainError
from pipeline.records.results.profiled import Counters, Peak, Unmeasured

_PROJECT = Path(__file__).parents[3]
_CEILING_SOURCES = (
    "backends/abi.py",
    "backends/cpp/compiler.py",
    "backends/cpp/loading.py",
    "backends/devices/cpu/ceilings.cpp",
    "backends/devices/cpu/ceilings.py",
    "backends/devices/cpu/matrix_peaks.py",
    "backends/devices/cpu/processor.py",
    "backends/devices/cpu/timer.py",
)


class CpuMeasurement(DeviceMeasurement):
    """The monotonic clock, Linux's sensors and counters, ceilings by C++ and the libraries' products."""

    kind: DeviceKind = "cpu"

    def timer(self, *, flush_cache: bool) -> CpuTimer:
        """A processor has no graphs."""
        return CpuTimer(flush_cache=flush_cache)

    def ceilings(
        self, folder: Path, products: tuple[str, ...], known: DeviceCeilings | None
    ) -> DeviceCeilings:
        """Streams, multiply-adds and empty calls in C++; matrix products of NumPy and torch."""
        from pipeline.backends.devices.cpu.ceilings import measure

        return measure(folder, products, known)

    def ceiling_sources(self) -> tuple[Path, ...]:
        """Code that measures, and code that the measured calls go through."""
        return tuple(_PROJECT / name for name in _CEILING_SOURCES)

    def circumstances(self) -> dict[str, str]:
        """The compiler as well, if there is one: without it, measuring fails and says so."""
        from pipeline.backends.cpp import compiler

        found = machine_state()
        with contextlib.suppress(ToolchainError):
            found["compiler"] = compiler.toolchain()["c++"]
        return found

    def lock_name(self, device: str) -> str:  # noqa: ARG002
        """All processes share the processors, whatever their fingerprint."""
        return self.kind

    def before_confinement(self) -> None:
        """A confined process may neither load OpenMP's runtime globally nor raise its priority."""
        from pipeline.backends.cpp.loading import share_openmp

        share_openmp()
        raise_priority()

    def conditions(self, uuid: str | None = None) -> LinuxSource:  # noqa: ARG002
        """Linux's files about the cores in use."""
        return LinuxSource(usable_cores())

    @contextlib.contextmanager
    def energy_meter(self) -> Iterator[RaplMeter]:
        """RAPL."""
        yield RaplMeter()

    def peak_memory(self, call: Call) -> Peak:
        """The allocator keeps on keeping what is freed (`CpuTimer.prepare`)."""
        return host_peak(call, trim_threshold=NEVER_TRIMMED)

    def count_calls(self, batch: Callable[[], int]) -> Counters | Unmeasured:
        """perf_event_open."""
        return counters.count(batch)

    def counter_lines(self) -> dict[str, str]:
        """Which events the kernel counts."""
        return counters.lines()


MEASUREMENT = CpuMeasurement()
