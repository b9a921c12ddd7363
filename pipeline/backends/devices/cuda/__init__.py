"""NVIDIA GPUs, through torch, Triton, NVML and Nsight Compute."""

import os
import re
from pathlib import Path

from pipeline.backends.devices.device import (
    Device,
    DeviceMeasurement,
    FoundDevice,
    MemoryChecker,
    NotAvailable,
    measurement_of,
)
from pipeline.records.configuration.hardware import DeviceKind


class Cuda(Device):
    """The device that CUDA numbers 0 in this process."""

    kind: DeviceKind = "cuda"
    torch_device = "cuda"
    has_graphs = True

    def found(self) -> tuple[FoundDevice, ...]:
        """As NVML reports them: no torch, no context."""
        from pipeline.backends.devices.cuda.nvml import Nvml, NvmlDevice

        def described(device: NvmlDevice) -> FoundDevice | None:
            try:
                major, minor = device.capability()
                return FoundDevice(kind=self.kind, architecture=f"sm_{major}{minor}", name=device.name())
            except NotAvailable:
                return None

        try:
            with Nvml() as nvml:
                return tuple(found for each in nvml.devices() if (found := described(each)) is not None)
        except NotAvailable:
            return ()

    def base_architecture(self, architecture: str) -> str:
        """Without the feature suffix: a binary for `sm_90a` runs on the same device as one for `sm_90`."""
        return re.sub(r"^(sm_\d+)[af]$", r"\1", architecture)

    def driver_folders(self) -> tuple[Path, ...]:
        """The folder of this process's threads: from version 570 on, a driver that cannot name its own
        threads there fails to initialize with error 304.

        Source: https://github.com/NVIDIA/OpenShell/issues/710.
        """
        folder = Path(f"/proc/{os.getpid()}/task")
        return (folder,) if folder.is_dir() else ()

    def memory_checker(self, log: Path) -> MemoryChecker | None:
        """Compute Sanitizer, if it is installed."""
        from pipeline.backends.devices.cuda.compute_sanitizer import memory_checker

        return memory_checker(log)

    def synchronize(self) -> None:
        """The device that torch has open in this process, if it has one."""
        import torch

        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.synchronize()

    def release(self) -> None:
        """What torch keeps."""
        import torch

        torch.cuda.empty_cache()

    def measurement(self) -> DeviceMeasurement:
        """Its own module."""
        return measurement_of(__name__)
