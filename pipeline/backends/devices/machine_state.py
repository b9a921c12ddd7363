"""What the ceilings of a device depend on beside the device: read from the system, by name.

Part of the key under which ceilings are kept: where one of these changes they are measured anew.
"""

import contextlib
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from pipeline.backends.cpp import compiler
from pipeline.backends.devices.cpu.processor import usable_cores
from pipeline.backends.devices.cuda.nvml import NotAvailable, Nvml, NvmlDevice
from pipeline.records.configuration.hardware import BackendKind
from pipeline.records.environment import visible_devices
from pipeline.records.errors import ToolchainError

ROOT = Path("/")
LIBRARIES = ("torch", "numpy", "triton")
_FILES = {
    "boot": "proc/sys/kernel/random/boot_id",
    "huge_pages": "sys/kernel/mm/transparent_hugepage/enabled",
    "quota": "sys/fs/cgroup/cpu.max",
    "governor": "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "highest_clock_khz": "sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq",
    "boost": "sys/devices/system/cpu/cpufreq/boost",
    "no_turbo": "sys/devices/system/cpu/intel_pstate/no_turbo",
}
_DRIVERS = {"cuda": "proc/driver/nvidia/version", "hip": "sys/module/amdgpu/version"}


def circumstances(kind: BackendKind, root: Path = ROOT) -> dict[str, str]:
    """Boot, cores, their quota, limits of the clock, driver, versions; what is not told is left out."""
    found = {name: _first_line(root / path) for name, path in _FILES.items()}
    found["cores"] = ",".join(map(str, usable_cores()))
    found["kernel"] = platform.release()
    found |= {name: _version(name) for name in LIBRARIES}
    if kind == "cpu":
        found["compiler"] = _compiler()
    else:
        found["driver"] = _first_line(root / _DRIVERS[kind])
        found["visible"] = ",".join(visible_devices() or ())
    if kind == "cuda":
        found |= _nvml_limits()
    return {name: text for name, text in found.items() if text}


def _nvml_limits() -> dict[str, str]:
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


def _compiler() -> str:
    """What compiles the streams and multiply-adds; empty without one, which is told when it is needed."""
    with contextlib.suppress(ToolchainError):
        return compiler.toolchain()["c++"]
    return ""


def _first_line(path: Path) -> str:
    try:
        return path.read_text().partition("\n")[0].strip()
    except OSError:
        return ""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
