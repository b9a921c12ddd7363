"""Which GPU is here: NVIDIA through NVML, AMD through the kernel's tables; no torch, no device context."""

import functools
import re
from pathlib import Path

from pipeline.backends.devices.cuda.nvml import NotAvailable, Nvml, NvmlDevice
from pipeline.records.configuration.hardware import BackendKind

KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")

Gpu = tuple[BackendKind, str, str]


def read_gpu() -> Gpu | None:
    """(kind, architecture, name) of the first GPU that this process may use, or None."""
    return next(iter(gpus()), None)


def gpu_present(kind: str, architecture: str) -> bool:
    """Whether a binary for this target runs here: the same architecture, feature suffix (`sm_90a`) aside."""
    wanted = (kind, re.sub(r"^(sm_\d+)[af]$", r"\1", architecture))
    return any((found, name) == wanted for found, name, _ in gpus())


@functools.cache
def gpus() -> tuple[Gpu, ...]:
    """Every GPU that this process may use, read once."""
    return (*_nvidia(), *_amd(KFD_NODES))


def _nvidia() -> list[Gpu]:
    try:
        with Nvml() as nvml:
            return [gpu for device in nvml.devices() if (gpu := _described(device)) is not None]
    except NotAvailable:
        return []


def _described(device: NvmlDevice) -> Gpu | None:
    try:
        major, minor = device.capability()
        return "cuda", f"sm_{major}{minor}", device.name()
    except NotAvailable:
        return None


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
