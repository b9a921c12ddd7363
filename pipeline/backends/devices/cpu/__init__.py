"""The processors of the host."""

from pathlib import Path

from pipeline.backends.devices.device import (
    Device,
    DeviceMeasurement,
    FoundDevice,
    MemoryChecker,
    measurement_of,
)
from pipeline.records.configuration.hardware import DeviceKind, Target


class Cpu(Device):
    """All cores that this process may use, as one device."""

    kind: DeviceKind = "cpu"
    torch_device = "cpu"
    is_host = True

    def found(self) -> tuple[FoundDevice, ...]:
        """Every machine has one."""
        from pipeline.backends.devices.cpu.detection import read_cpu

        cpu = read_cpu()
        return (FoundDevice(kind=self.kind, architecture=cpu.architecture, name=cpu.facts["model"]),)

    def mismatch(self, target: Target) -> str | None:
        """The processor model and its instruction sets."""
        from pipeline.backends.devices.cpu.detection import read_cpu

        cpu = read_cpu()
        if cpu.architecture == target.architecture and set(target.features) <= set(cpu.features):
            return None
        return f"is a {cpu.architecture}, the plan was made for {target.architecture}"

    def memory_checker(self, log: Path) -> MemoryChecker | None:
        """A library that says where native code crashed."""
        from pipeline.backends.devices.cpu.crash_report import memory_checker

        return memory_checker(log)

    def measurement(self) -> DeviceMeasurement:
        """Its own module."""
        return measurement_of(__name__)
