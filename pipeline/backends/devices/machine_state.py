"""What the ceilings of a device depend on besides the device: read from the system, by name.

Part of the key under which ceilings are kept: if one of these changes, they are measured anew.
"""

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pipeline.backends.devices.cpu.processor import usable_cores
from pipeline.records.environment import visible_devices

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


def machine_state(root: Path = ROOT) -> dict[str, str]:
    """Boot, cores, their quota, limits of the clock, versions; what is not reported is left out."""
    found = {name: _first_line(root / path) for name, path in _FILES.items()}
    found["cores"] = ",".join(map(str, usable_cores()))
    found["kernel"] = platform.release()
    found |= {name: _version(name) for name in LIBRARIES}
    return {name: text for name, text in found.items() if text}


def driver_state(version_file: str, root: Path = ROOT) -> dict[str, str]:
    """A GPU driver's version from its file below `root`, and which GPUs this process is limited to."""
    found = {"driver": _first_line(root / version_file), "visible": ",".join(visible_devices() or ())}
    return {name: text for name, text in found.items() if text}


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
