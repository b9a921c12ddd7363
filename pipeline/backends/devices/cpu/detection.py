"""What this machine is, read from the operating system in milliseconds and without importing torch.

Nothing is measured here: ceilings come from profile. What the system does not tell is left out, or, where
generate cannot do without it, assumed small and labelled `assumed`.
"""

import functools
import os
import platform
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from pipeline.records.configuration.hardware import Hardware, Quantity

CPUINFO = Path("/proc/cpuinfo")
CPUS = Path("/sys/devices/system/cpu")

# What -march=native enables and what makes a difference to numeric kernels, in the kernel's spelling.
_FEATURES = {
    "x86_64": (
        "sse2", "ssse3", "sse4_1", "sse4_2", "avx", "avx2", "fma", "f16c", "bmi1", "bmi2", "avx_vnni",
        "avx_ne_convert", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512_vnni",
        "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16", "amx_fp16", "avx10_1", "avx10_2",
    ),
    "aarch64": (
        "asimd", "fphp", "asimdhp", "asimddp", "asimdfhm", "bf16", "i8mm", "sve", "svebf16", "sve2", "sme",
        "sme2",
    ),
}  # fmt: skip

_X86_LEVELS = (
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    ("x86-64-v3", {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma"}),
    ("x86-64-v2", {"sse4_1", "sse4_2", "ssse3"}),
)

# glibc's constants for sysconf, which asks the processor itself; Python does not name them.
SYSCONF_CACHES = {"l1d_cache": 188, "l2_cache": 191, "l3_cache": 194}

_ASSUMED_CACHES = {"l1d_cache": 32 << 10, "l2_cache": 256 << 10}


def read_cpu() -> Hardware:
    """The CPU as a hardware target: limits that constraints may name, features, and facts for the record.

    Limits: `vector_bits`, `vector_registers`, `l1d_cache`, `l2_cache` (bytes, per core), and `l3_cache` where
    the system tells. Cores are facts, not limits: another number of threads needs no other binary.
    """
    machine = _machine()
    info = cpuinfo()
    features = _features(machine, info)
    cpus = usable_cpus()
    return Hardware(
        name="cpu",
        description="The CPU of this machine.",
        kind="cpu",
        architecture=_architecture(machine, features, info),
        limits={**_vector_limits(machine, features), **_caches(min(cpus))},
        features=features,
        facts={
            "model": info.get("model name") or platform.processor() or machine,
            "cores": str(_physical_cores(cpus)),
            "threads": str(len(cpus)),
            "memory_bytes": str(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
            "system": f"{platform.system()} {platform.release()}",
        }
        | _quota(),
    )


def _machine() -> str:
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


@functools.cache
def cpuinfo() -> dict[str, str]:
    """First value of every key of /proc/cpuinfo; empty where there is none."""
    info: dict[str, str] = {}
    try:
        text = CPUINFO.read_text()
    except OSError:
        return info
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            info.setdefault(key.strip(), value.strip())
    return info


def _features(machine: str, info: dict[str, str]) -> tuple[str, ...]:
    present = set((info.get("flags") or info.get("Features") or "").split())
    return tuple(name for name in _FEATURES.get(machine, ()) if name in present)


def _architecture(machine: str, features: Iterable[str], info: dict[str, str]) -> str:
    """Instruction-set level and processor model: -march=native tunes for the model as well."""
    if machine == "x86_64":
        have = set(features)
        level = next((name for name, need in _X86_LEVELS if need <= have), "x86-64")
        model = [info.get(key) for key in ("vendor_id", "cpu family", "model")]
    else:
        level = machine
        model = [info.get(key) for key in ("CPU implementer", "CPU part")]
    parts = [level, *(part for part in model if part)]
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", "-".join(parts))


def _vector_limits(machine: str, features: tuple[str, ...]) -> dict[str, Quantity]:
    if machine == "aarch64":
        bits, registers, source = 128, 32, "Advanced SIMD"
    elif "avx512f" in features:
        bits, registers, source = 512, 32, "avx512f"
    elif "avx" in features:
        bits, registers, source = 256, 16, "avx"
    elif machine == "x86_64":
        bits, registers, source = 128, 16, "sse2"
    else:
        bits, registers, source = 128, 16, f"assumed for {machine}"
    return {
        "vector_bits": Quantity(value=bits, unit="bit", source=source),
        "vector_registers": Quantity(value=registers, unit="registers", source=source),
    }


def _caches(cpu: int) -> dict[str, Quantity]:
    """Cache sizes: sysfs first, then the C library, then small assumed ones."""
    found = _sysfs_caches(CPUS / f"cpu{cpu}" / "cache")
    if sys.platform == "linux":
        for name, constant in SYSCONF_CACHES.items():
            size = os.sysconf(constant)
            if name not in found and size > 0:
                found[name] = Quantity(value=size, unit="byte", source=f"sysconf({constant})")
    for name, size in _ASSUMED_CACHES.items():
        found.setdefault(name, Quantity(value=size, unit="byte", source="assumed: the system does not tell"))
    return dict(sorted(found.items()))


def _sysfs_caches(folder: Path) -> dict[str, Quantity]:
    found = {}
    for index in sorted(folder.glob("index*")):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        match = re.fullmatch(r"(\d+)([KMG]?)", size)
        if kind == "Instruction" or match is None:
            continue
        name = "l1d_cache" if level == "1" else f"l{level}_cache"
        scale = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[match[2]]
        found[name] = Quantity(value=int(match[1]) * scale, unit="byte", source=str(index))
    return found


def usable_cpus() -> set[int]:
    """Hardware threads that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _physical_cores(cpus: set[int]) -> int:
    """Cores behind the usable hardware threads; each thread counts as one where the system does not tell."""
    cores = set()
    for cpu in cpus:
        topology = CPUS / f"cpu{cpu}" / "topology"
        try:
            cores.add(
                tuple((topology / name).read_text().strip() for name in ("physical_package_id", "core_id"))
            )
        except OSError:
            cores.add(("cpu", str(cpu)))
    return len(cores)


def _quota() -> dict[str, str]:
    """The container's share of processor time, in cores, where it is limited (cgroup 2)."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        return {}
    return {} if quota == "max" else {"cpu_quota": f"{int(quota) / int(period):g}"}
