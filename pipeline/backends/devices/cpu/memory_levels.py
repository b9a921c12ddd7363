"""The levels of a CPU's memory as its system files describe them; out: names and bytes of all used cores."""

import re
from collections.abc import Sequence
from pathlib import Path

from pipeline.backends.devices.device_ceilings import Level

MAIN = "DRAM"
CPUS = Path("/sys/devices/system/cpu")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def cpu_levels(cores: Sequence[int], cpus: Path = CPUS) -> tuple[Level, ...]:
    """Data caches of these cores, each cache counted once however many share it, and then the memory.

    Where Linux does not describe the caches only the memory is left.
    """
    caches: dict[tuple[int, str], int] = {}
    for core in cores:
        for index in sorted((cpus / f"cpu{core}" / "cache").glob("index*")):
            found = _cache(index)
            if found is not None:
                level, shared, size = found
                caches[(level, shared)] = size
    capacity = {
        level: sum(size for (at, _), size in caches.items() if at == level) for level, _ in sorted(caches)
    }
    return (*(Level(name=f"L{level}", capacity=size) for level, size in capacity.items()), Level(name=MAIN))


def _cache(index: Path) -> tuple[int, str, int] | None:
    """Level, the processors that share it, and bytes; None for an instruction cache and what is not told."""
    try:
        level, kind, size, shared = (
            (index / name).read_text().strip() for name in ("level", "type", "size", "shared_cpu_list")
        )
    except OSError:
        return None
    match = re.fullmatch(r"(\d+)([KMG]?)", size)
    if kind == "Instruction" or match is None:
        return None
    return int(level), shared, int(match[1]) * _UNITS[match[2]]
