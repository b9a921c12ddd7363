"""NVIDIA's management library: what the driver reports of a device, in plain units, or why it does not.

No torch and no device context: the process that asks leaves no trace on the device. The calls are those of
`nvidia-ml-py` (module `pynvml`); units and codes: NVML API reference, https://docs.nvidia.com/deploy/nvml-api/.
"""

import contextlib
from types import TracebackType
from typing import Any, Literal, Self

from pipeline.backends.devices.device import NotAvailable
from pipeline.records.environment import visible_devices

_CLOCKS = {"graphics": 0, "sm": 1, "memory": 2}  # nvmlClockType_t
_TEMPERATURE_GPU = 0
_IDLE = 0x1
_SLOWDOWNS = {  # nvmlClocksEventReasons
    0x2: "applications clocks setting",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clock setting",
}


class Nvml:
    """The library, opened for as long as the context lasts."""

    def __init__(self) -> None:
        try:
            import pynvml
        except ImportError:
            raise NotAvailable("nvidia-ml-py is not installed") from None
        self._library: Any = pynvml
        try:
            self.call("nvmlInit")
        except NotAvailable as error:
            if "not found" in str(error).lower():
                raise NotAvailable("no NVIDIA driver: libnvidia-ml.so.1 is not here") from None
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End its use by this process."""
        self.call("nvmlShutdown")

    def driver_version(self) -> str:
        """Of the driver."""
        return str(self.call("nvmlSystemGetDriverVersion"))

    def devices(self) -> tuple["NvmlDevice", ...]:
        """Those that this process may use, in the order in which CUDA numbers them; NVML itself shows all.

        CUDA puts the fastest first if a machine has several kinds and CUDA_DEVICE_ORDER does not say
        PCI_BUS_ID; `device` finds one by its identity whatever the order.
        """
        everything = self.all_devices()
        visible = visible_devices()
        if visible is None:
            return everything
        found = []
        for entry in visible:  # what follows an entry that names nothing is invisible to CUDA as well
            device = self._named(entry, everything)
            if device is None:
                break
            found.append(device)
        return tuple(found)

    def device(self, uuid: str | None = None) -> "NvmlDevice":
        """The device of this identity (as torch reports it, with or without `GPU-`), or the first one.

        Raises
        ------
        NotAvailable
            There is none.
        """
        if uuid is not None:
            wanted = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
            found = [device for device in self.all_devices() if device.uuid() == wanted]
            if not found:
                raise NotAvailable(f"no device {wanted} among those that the driver shows")
            return found[0]
        devices = self.devices()
        if not devices:
            raise NotAvailable("no NVIDIA device is visible to this process")
        return devices[0]

    def all_devices(self) -> tuple["NvmlDevice", ...]:
        """Those that the driver shows; one without a handle is left out."""
        found = []
        for index in range(self.call("nvmlDeviceGetCount")):
            with contextlib.suppress(NotAvailable):
                found.append(NvmlDevice(self, self.call("nvmlDeviceGetHandleByIndex", index)))
        return tuple(found)

    def call(self, name: str, *arguments: object) -> Any:
        """One function; NotAvailable with its name and the reason."""
        try:
            return getattr(self._library, name)(*arguments)
        except self._library.NVMLError as error:
            raise NotAvailable(f"{name}: {str(error).lower()}") from None

    def _named(self, entry: str, everything: tuple["NvmlDevice", ...]) -> "NvmlDevice | None":
        """By number, or by the beginning of its identity; a slice of a device (MIG) by its whole identity."""
        if entry.isdecimal():
            return everything[int(entry)] if int(entry) < len(everything) else None
        if entry.startswith("GPU-"):
            return next((device for device in everything if device.uuid().startswith(entry)), None)
        return self._slice(entry) if entry.startswith("MIG-") else None

    def _slice(self, entry: str) -> "NvmlDevice | None":
        try:
            part = self.call("nvmlDeviceGetHandleByUUID", entry)
            whole = self.call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", part)
        except NotAvailable:
            return None
        return NvmlDevice(self, whole, sliced=True)


class NvmlDevice:
    """One device; each method asks the driver anew (microseconds to a millisecond) or raises NotAvailable."""

    def __init__(self, nvml: Nvml, handle: object, *, sliced: bool = False) -> None:
        self._nvml = nvml
        self._handle = handle
        self.sliced = sliced
        """Whether this process sees only a slice (MIG): clocks and energy are those of the whole device."""

    def name(self) -> str:
        """As the vendor names it."""
        return str(self._call("nvmlDeviceGetName"))

    def uuid(self) -> str:
        """Identity, `GPU-…`."""
        return str(self._call("nvmlDeviceGetUUID"))

    def capability(self) -> tuple[int, int]:
        """Compute capability, (9, 0) for sm_90."""
        major, minor = self._call("nvmlDeviceGetCudaComputeCapability")
        return major, minor

    def memory_bytes(self) -> int:
        """All of its memory, what the driver keeps for itself included."""
        return int(self._call("nvmlDeviceGetMemoryInfo").total)

    def clock_mhz(self, which: Literal["sm", "memory"]) -> float:
        """Present clock."""
        return float(self._call("nvmlDeviceGetClockInfo", _CLOCKS[which]))

    def highest_clock_mhz(self, which: Literal["graphics", "sm", "memory"]) -> float:
        """What the device can reach."""
        return float(self._call("nvmlDeviceGetMaxClockInfo", _CLOCKS[which]))

    def application_clock_mhz(self, which: Literal["graphics", "memory"]) -> float:
        """What applications run at, if it was set."""
        return float(self._call("nvmlDeviceGetApplicationsClock", _CLOCKS[which]))

    def temperature(self) -> float:
        """Of the chip, °C."""
        return float(self._call("nvmlDeviceGetTemperature", _TEMPERATURE_GPU))

    def watts(self) -> float:
        """Power of the whole board; since Ampere a mean over about a second."""
        return float(self._call("nvmlDeviceGetPowerUsage")) * 1e-3

    def power_limit(self) -> float:
        """Watts at which the driver slows the clock."""
        return float(self._call("nvmlDeviceGetEnforcedPowerLimit")) * 1e-3

    def joules(self) -> float:
        """Energy of the whole board since the driver was loaded (Volta and later)."""
        return float(self._call("nvmlDeviceGetTotalEnergyConsumption")) * 1e-3

    def performance_state(self) -> int:
        """0 is the fastest, 15 the slowest."""
        return int(self._call("nvmlDeviceGetPerformanceState"))

    def persistent(self) -> bool:
        """Whether the driver stays loaded between users, which spares the first one a second."""
        return bool(self._call("nvmlDeviceGetPersistenceMode") == 1)

    def slowdowns(self) -> tuple[tuple[str, ...], bool]:
        """What holds the clock down now, in words; and whether the device idles."""
        try:
            mask = int(self._call("nvmlDeviceGetCurrentClocksEventReasons"))
        except NotAvailable:  # its name before driver 535
            mask = int(self._call("nvmlDeviceGetCurrentClocksThrottleReasons"))
        bits = (1 << place for place in range(1, mask.bit_length()) if mask >> place & 1)
        return tuple(_SLOWDOWNS.get(bit, f"reason {bit:#x}") for bit in bits), bool(mask & _IDLE)

    def processes(self) -> tuple[int, ...]:
        """Process ids with a compute context on it, as the host numbers them: other users of the device."""
        return tuple(process.pid for process in self._call("nvmlDeviceGetComputeRunningProcesses"))

    def _call(self, name: str, *arguments: object) -> Any:
        return self._nvml.call(name, self._handle, *arguments)
