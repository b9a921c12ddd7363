"""AMD GPUs, found through the kernel's tables; torch drives them under the names of `torch.cuda`.

Binaries are compiled for them. Nothing here has run on one yet: calls are timed and ceilings measured as on
an NVIDIA GPU; conditions, energy and counters are not read.
"""

import re
from pathlib import Path

from pipeline.backends.devices.cuda import Cuda
from pipeline.backends.devices.device import DeviceMeasurement, FoundDevice, measurement_of
from pipeline.records.configuration.hardware import DeviceKind

KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")


class Hip(Cuda):
    """The device that HIP numbers 0 in this process."""

    kind: DeviceKind = "hip"

    def found(self) -> tuple[FoundDevice, ...]:
        """Nodes with a `gfx_target_version`, decimal MMmmss: 90402 is gfx942, 90010 is gfx90a."""
        found: list[FoundDevice] = []
        nodes = KFD_NODES.glob("*")
        for node in sorted(nodes, key=lambda path: int(path.name) if path.name.isdecimal() else 0):
            match = re.search(r"^gfx_target_version (\d+)$", _text(node / "properties"), re.MULTILINE)
            version = int(match[1]) if match else 0
            if version:
                architecture = f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
                name = _text(node / "name").strip() or architecture
                found.append(FoundDevice(kind=self.kind, architecture=architecture, name=name))
        return tuple(found)

    def base_architecture(self, architecture: str) -> str:
        """All of it."""
        return architecture

    def measurement(self) -> DeviceMeasurement:
        """Its own module."""
        return measurement_of(__name__)


def _text(path: Path) -> str:
    """Empty for a device that belongs to another container."""
    try:
        return path.read_text()
    except OSError:
        return ""
