"""How calls are timed on an AMD GPU: as on an NVIDIA GPU, with less that is observed."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from pipeline.backends.devices.cuda.measuring import CudaMeasurement
from pipeline.backends.devices.device import ConditionSource, EnergyMeter, NotAvailable
from pipeline.backends.devices.machine_state import driver_state, machine_state
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.results.profiled import Unmeasured


class HipMeasurement(CudaMeasurement):
    """Device events, and ceilings by torch and Triton, which know AMD GPUs under the names of CUDA."""

    kind: DeviceKind = "hip"
    has_profiler = False

    def circumstances(self) -> dict[str, str]:
        """Driver and visible devices as well; limits of power and clocks are not read."""
        return machine_state() | driver_state("sys/module/amdgpu/version")

    def conditions(self, uuid: str | None = None) -> ConditionSource:  # noqa: ARG002
        """Not read."""
        raise NotAvailable("conditions of AMD GPUs are not read")

    def energy_meter(self) -> AbstractContextManager[EnergyMeter]:
        """Not read."""
        raise NotAvailable("energy of AMD GPUs is not read")

    def count_calls(self, batch: Callable[[], int]) -> Unmeasured:  # noqa: ARG002
        """Not read."""
        return Unmeasured(quantity="counters", reason="counters of AMD GPUs are not read")

    def counter_lines(self) -> dict[str, str]:
        """Not read."""
        return {"counters": "absent: counters of AMD GPUs are not read"}


MEASUREMENT = HipMeasurement()
