"""What Linux tells about the processor: its cores, its caches, its name. In: nothing. Out: facts."""

import os
from pathlib import Path


def usable_cores() -> tuple[int, ...]:
    """One logical processor of each physical core that this process may use."""
    allowed = os.sched_getaffinity(0)
    first: dict[str, int] = {}
    for number in sorted(allowed):
        siblings = _read(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list").strip()
        first.setdefault(siblings or str(number), number)
    return tuple(first.values())


def cpu_facts() -> dict[str, str]:
    """What Linux tells about the processor; what it does not tell is left out."""
    info = _read("/proc/cpuinfo")
    facts: dict[str, str] = {}
    for key, name in (("model name", "name"), ("cpu MHz", "clock_mhz")):
        line = next((line for line in info.splitlines() if line.startswith(key)), "")
        if line:
            facts[name] = line.partition(":")[2].strip()
    governor = _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip()
    pages = _read("/sys/kernel/mm/transparent_hugepage/enabled")
    return (
        facts
        | ({"governor": governor} if governor else {})
        | ({"huge_pages": pages.partition("[")[2].partition("]")[0]} if "[" in pages else {})
    )


def last_level_cache() -> int:
    """Bytes of the largest cache of the first core; 32 MiB where Linux does not tell."""
    units = {"K": 1 << 10, "M": 1 << 20}
    sizes = [
        int(text[:-1]) * units[text[-1]]
        for index in range(5)
        if (text := _read(f"/sys/devices/system/cpu/cpu0/cache/index{index}/size").strip())
        and text[-1] in units
    ]
    return max(sizes, default=32 << 20)


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
