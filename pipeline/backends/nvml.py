"""NVIDIA's management library: what the driver tells of a device, in plain units, or why it does not.

No torch and no device context: the process that asks leaves no trace on the device. Through ctypes: the
functions below have had the same signatures for years and come with the driver, while `nvidia-ml-py`, itself
a ctypes wrapper, would be one package more to bring to machines that have torch and Triton and no network.

Source of functions, units and codes: NVML API reference, https://docs.nvidia.com/deploy/nvml-api/.
"""

import ctypes
from types import TracebackType
from typing import Literal, Self

from pipeline.records.environment import visible_devices

LIBRARIES = ("libnvidia-ml.so.1", "libnvidia-ml.so")

_NAME_BYTES = 96  # NVML_DEVICE_NAME_V2_BUFFER_SIZE
_UUID_BYTES = 96  # NVML_DEVICE_UUID_V2_BUFFER_SIZE
_INSUFFICIENT_SIZE = 7
_TEMPERATURE_GPU = 0
_CLOCKS = {"sm": 1, "memory": 2}  # nvmlClockType_t
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
_ERRORS = {  # nvmlReturn_t
    1: "the library is not initialised",
    2: "invalid argument",
    3: "not supported by this device",
    4: "no permission",
    6: "not found",
    9: "the driver is not loaded",
    10: "timeout",
    15: "the device has fallen off the bus",
    16: "the device must be reset",
    17: "the operating system refuses",
    18: "driver and library have different versions",
    999: "unknown error",
}


class NotTold(Exception):
    """The library, or this value, is not to be had; the text says why, in one line."""


class Nvml:
    """The library, opened for as long as the context lasts."""

    def __init__(self) -> None:
        self._library = _load()
        check("nvmlInit_v2", self.function("nvmlInit_v2")())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End its use by this process."""
        self._library.nvmlShutdown()

    def devices(self) -> tuple["Device", ...]:
        """Those that this process may use, in the order in which CUDA numbers them; NVML itself shows all.

        CUDA puts the fastest first where a machine has several kinds and CUDA_DEVICE_ORDER does not say
        PCI_BUS_ID; `device` finds one by its identity whatever the order.
        """
        everything = self._all()
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

    def device(self, uuid: str | None = None) -> "Device":
        """The device of this identity (as torch tells it, with or without `GPU-`), or the first one.

        Raises
        ------
        NotTold
            There is none.
        """
        if uuid is not None:
            wanted = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
            found = [device for device in self._all() if device.uuid() == wanted]
            if not found:
                raise NotTold(f"no device {wanted} among those that the driver shows")
            return found[0]
        devices = self.devices()
        if not devices:
            raise NotTold("no NVIDIA device is visible to this process")
        return devices[0]

    def _all(self) -> tuple["Device", ...]:
        count = ctypes.c_uint()
        check("nvmlDeviceGetCount_v2", self.function("nvmlDeviceGetCount_v2")(ctypes.byref(count)))
        return tuple(
            Device(self, handle)
            for index in range(count.value)
            if (handle := self._handle(index)) is not None
        )

    def _handle(self, index: int) -> ctypes.c_void_p | None:
        handle = ctypes.c_void_p()
        code = self.function("nvmlDeviceGetHandleByIndex_v2")(ctypes.c_uint(index), ctypes.byref(handle))
        return None if code else handle

    def _named(self, entry: str, everything: tuple["Device", ...]) -> "Device | None":
        """By number, or by the beginning of its identity; a slice of a device (MIG) by its whole identity."""
        if entry.isdecimal():
            return everything[int(entry)] if int(entry) < len(everything) else None
        if entry.startswith("GPU-"):
            return next((device for device in everything if device.uuid().startswith(entry)), None)
        return self._slice(entry) if entry.startswith("MIG-") else None

    def _slice(self, entry: str) -> "Device | None":
        part, whole = ctypes.c_void_p(), ctypes.c_void_p()
        find = self.function("nvmlDeviceGetHandleByUUID")
        parent = self.function("nvmlDeviceGetDeviceHandleFromMigDeviceHandle")
        if find(entry.encode(), ctypes.byref(part)) or parent(part, ctypes.byref(whole)):
            return None
        return Device(self, whole, sliced=True)

    def function(self, name: str) -> "ctypes._NamedFuncPointer":
        """One function of the library; NotTold where the driver is too old to have it."""
        try:
            return getattr(self._library, name)  # type: ignore[no-any-return]
        except AttributeError:
            raise NotTold(f"{name}: this driver does not have it") from None


class Device:
    """One device; each method asks the driver anew (some microseconds to a millisecond) or raises NotTold."""

    def __init__(self, nvml: Nvml, handle: ctypes.c_void_p, *, sliced: bool = False) -> None:
        self._nvml = nvml
        self._handle = handle
        self.sliced = sliced
        """Whether this process sees only a slice (MIG): clocks and energy are those of the whole device."""

    def name(self) -> str:
        """As the vendor names it."""
        return self._text("nvmlDeviceGetName", _NAME_BYTES)

    def uuid(self) -> str:
        """Identity, `GPU-…`."""
        return self._text("nvmlDeviceGetUUID", _UUID_BYTES)

    def capability(self) -> tuple[int, int]:
        """Compute capability, (9, 0) for sm_90."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvmlDeviceGetCudaComputeCapability", ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def clock_mhz(self, which: Literal["sm", "memory"]) -> float:
        """Present clock."""
        return float(self._number("nvmlDeviceGetClockInfo", ctypes.c_int(_CLOCKS[which])))

    def highest_clock_mhz(self, which: Literal["sm", "memory"]) -> float:
        """What the device can reach."""
        return float(self._number("nvmlDeviceGetMaxClockInfo", ctypes.c_int(_CLOCKS[which])))

    def temperature(self) -> float:
        """Of the chip, °C."""
        return float(self._number("nvmlDeviceGetTemperature", ctypes.c_int(_TEMPERATURE_GPU)))

    def watts(self) -> float:
        """Power of the whole board; since Ampere a mean over about a second."""
        return self._number("nvmlDeviceGetPowerUsage") * 1e-3

    def power_limit(self) -> float:
        """Watts at which the driver slows the clock."""
        return self._number("nvmlDeviceGetEnforcedPowerLimit") * 1e-3

    def joules(self) -> float:
        """Energy of the whole board since the driver was loaded (Volta and later)."""
        counter = ctypes.c_ulonglong()
        self._call("nvmlDeviceGetTotalEnergyConsumption", ctypes.byref(counter))
        return counter.value * 1e-3

    def performance_state(self) -> int:
        """0 is the fastest, 15 the slowest."""
        return self._number("nvmlDeviceGetPerformanceState")

    def persistent(self) -> bool:
        """Whether the driver stays loaded between users, which spares the first one a second."""
        return self._number("nvmlDeviceGetPersistenceMode") == 1

    def slowdowns(self) -> tuple[tuple[str, ...], bool]:
        """What holds the clock down now, in words; and whether the device idles."""
        mask = ctypes.c_ulonglong()
        try:
            self._call("nvmlDeviceGetCurrentClocksEventReasons", ctypes.byref(mask))
        except NotTold:  # its name before driver 535
            self._call("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.byref(mask))
        bits = (1 << place for place in range(1, mask.value.bit_length()) if mask.value >> place & 1)
        return tuple(_SLOWDOWNS.get(bit, f"reason {bit:#x}") for bit in bits), bool(mask.value & _IDLE)

    def processes(self) -> tuple[int, ...]:
        """Process ids with a compute context on it, as the host numbers them: other users of the device."""
        count = ctypes.c_uint(0)
        name = "nvmlDeviceGetComputeRunningProcesses_v3"
        code = self._nvml.function(name)(self._handle, ctypes.byref(count), None)
        if code == 0:
            return ()
        if code != _INSUFFICIENT_SIZE:
            check(name, code)
        count.value += 8  # room for those that start meanwhile
        found = (_Process * count.value)()
        self._call(name, ctypes.byref(count), found)
        return tuple(process.pid for process in found[: count.value])

    def _number(self, name: str, *arguments: ctypes.c_int) -> int:
        value = ctypes.c_uint()
        self._call(name, *arguments, ctypes.byref(value))
        return value.value

    def _text(self, name: str, size: int) -> str:
        text = ctypes.create_string_buffer(size)
        self._call(name, text, ctypes.c_uint(size))
        return text.value.decode(errors="replace")

    def _call(self, name: str, *arguments: object) -> None:
        check(name, self._nvml.function(name)(self._handle, *arguments))


class _Process(ctypes.Structure):
    """nvmlProcessInfo_t of the functions that end in _v3."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


def check(name: str, code: int) -> None:
    """Turn a return code into words."""
    if code:
        raise NotTold(f"{name}: {_ERRORS.get(code, f'error {code}')}")


def _load() -> ctypes.CDLL:
    for library in LIBRARIES:
        try:
            return ctypes.CDLL(library)
        except OSError:
            continue
    raise NotTold(f"no NVIDIA driver: {LIBRARIES[0]} is not here")
