"""Which GPU is here: NVIDIA through NVML, AMD through the kernel's tables; no torch, no device context."""

import ctypes
import functools
import re
from pathlib import Path

from pipeline.environment import visible_devices
from pipeline.records.hardware import BackendKind

_NVML = ("libnvidia-ml.so.1", "libnvidia-ml.so")
_KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")
_NAME_BYTES = 96  # NVML_DEVICE_NAME_V2_BUFFER_SIZE

Gpu = tuple[BackendKind, str, str]


def read_gpu() -> Gpu | None:
    """(kind, architecture, name) of the first GPU that this process may use, or None."""
    return next(iter(_gpus()), None)


def gpu_present(kind: str, architecture: str) -> bool:
    """Whether a binary for this target runs here: the same architecture, feature suffix (`sm_90a`) aside."""
    wanted = (kind, re.sub(r"^(sm_\d+)[af]$", r"\1", architecture))
    return any((found, name) == wanted for found, name, _ in _gpus())


@functools.cache
def _gpus() -> tuple[Gpu, ...]:
    return (*_nvidia(), *_amd(_KFD_NODES))


def _nvidia() -> list[Gpu]:
    for library in _NVML:
        try:
            nvml = ctypes.CDLL(library)
        except OSError:
            continue
        if nvml.nvmlInit_v2() != 0:
            return []
        try:
            return [gpu for gpu in map(functools.partial(_nvml_device, nvml), _nvml_indices(nvml)) if gpu]
        finally:
            nvml.nvmlShutdown()
    return []


def _nvml_indices(nvml: ctypes.CDLL) -> list[int]:
    """Devices in the order in which CUDA numbers them for this process; NVML itself shows all."""
    count = ctypes.c_uint()
    if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
        return []
    visible = visible_devices()
    if visible is None:
        return list(range(count.value))
    indices = []
    for entry in visible:
        if not entry.isdecimal():  # a UUID, or -1: nothing from here on is visible
            if entry.startswith(("GPU-", "MIG-")):
                return list(range(count.value))
            break
        indices.append(int(entry))
    return [index for index in indices if index < count.value]


def _nvml_device(nvml: ctypes.CDLL, index: int) -> Gpu | None:
    handle, major, minor = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
    name = ctypes.create_string_buffer(_NAME_BYTES)
    calls = (
        nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle)),
        nvml.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor)),
        nvml.nvmlDeviceGetName(handle, name, ctypes.c_uint(_NAME_BYTES)),
    )
    if any(calls):
        return None
    return "cuda", f"sm_{major.value}{minor.value}", name.value.decode(errors="replace")


def _amd(nodes: Path) -> list[Gpu]:
    """Nodes with a `gfx_target_version`, decimal MMmmss: 90402 is gfx942, 90010 is gfx90a."""
    found: list[Gpu] = []
    for node in sorted(nodes.glob("*"), key=lambda path: int(path.name) if path.name.isdecimal() else 0):
        try:
            properties = (node / "properties").read_text()
        except OSError:  # a device that belongs to another container
            continue
        match = re.search(r"^gfx_target_version (\d+)$", properties, re.MULTILINE)
        version = int(match[1]) if match else 0
        if version:
            architecture = f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
            found.append(("hip", architecture, _amd_name(node) or architecture))
    return found


def _amd_name(node: Path) -> str | None:
    try:
        return (node / "name").read_text().strip() or None
    except OSError:
        return None
