"""How calls are timed and observed on an NVIDIA GPU."""

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from pipeline.backends.devices.cuda import counters
from pipeline.backends.devices.cuda.conditions import NvmlSource, limits, open_meter
from pipeline.backends.devices.cuda.timer import CudaTimer
from pipeline.backends.devices.device import Call, ConditionSource, DeviceMeasurement, EnergyMeter
from pipeline.backends.devices.device_ceilings import DeviceCeilings
from pipeline.backends.devices.machine_state import driver_state, machine_state
from pipeline.backends.devices.peak_memory import torch_device_peak
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.results.profiled import Counters, Peak, Unmeasured

_PACKAGE = Path(__file__).parent


class CudaMeasurement(DeviceMeasurement):
    """Device events, NVML, Nsight Compute, ceilings by torch and small Triton kernels."""

    kind: DeviceKind = "cuda"
    has_profiler = True

    def timer(self, *, flush_cache: bool) -> CudaTimer:
        """On the current stream of torch."""
        return CudaTimer(flush_cache=flush_cache)

    def ceilings(
        self,
        folder: Path,  # noqa: ARG002
        products: tuple[str, ...],
        known: DeviceCeilings | None,
    ) -> DeviceCeilings:
        """Streams, multiply-adds, launches, and torch's matrix product; no files are needed."""
        from pipeline.backends.devices.cuda.ceilings import measure

        return measure(products, known)

    def ceiling_sources(self) -> tuple[Path, ...]:
        """Code that measures."""
        return (_PACKAGE / "ceilings.py", _PACKAGE / "timer.py")

    def circumstances(self) -> dict[str, str]:
        """Driver, visible devices, limits of power and clocks as well."""
        return machine_state() | driver_state("proc/driver/nvidia/version") | limits()

    def conditions(self, uuid: str | None = None) -> ConditionSource:
        """NVML."""
        return NvmlSource(uuid)

    def energy_meter(self) -> AbstractContextManager[EnergyMeter]:
        """NVML's counter of the whole board."""
        return open_meter()

    def peak_memory(self, call: Call) -> Peak:
        """Of the device and of the host."""
        return torch_device_peak(call)

    def count_process(
        self, command: Sequence[str], folder: Path, *, flush_cache: bool
    ) -> Counters | Unmeasured:
        """Nsight Compute."""
        return counters.count(command, folder, flush_cache=flush_cache)

    @contextlib.contextmanager
    def profiled(self) -> Iterator[None]:
        """cudaProfilerStart and cudaProfilerStop: what ncu watches for."""
        import torch

        torch.cuda.synchronize()
        runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]
        runtime.cudaProfilerStart()
        yield
        torch.cuda.synchronize()
        runtime.cudaProfilerStop()

    def counter_lines(self) -> dict[str, str]:
        """Whether ncu is installed."""
        return counters.lines()


MEASUREMENT = CudaMeasurement()
