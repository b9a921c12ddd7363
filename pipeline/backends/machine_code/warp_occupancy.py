"""How many warps one multiprocessor can hold at once: an estimate from resources, before anything runs.

The rules are those of NVIDIA's occupancy calculator (cuda_occupancy.h of CUDA 13,
`cudaOccMaxBlocksPerSM*Limit`) and of LLVM's AMDGPU backend (AMDGPUBaseInfo.cpp and GCNSubtarget.cpp of LLVM
21); the capacities are the target's limits.
"""

from typing import Literal

from pipeline.records.configuration.hardware import Target
from pipeline.records.record import Record

Limiter = Literal["threads", "blocks", "registers", "shared_memory"]


class Resources(Record, frozen=True, kw_only=True):
    """What one block of a kernel needs."""

    threads: int
    registers: int
    """Per thread."""
    scalar_registers: int = 0
    """AMD: per wave."""
    shared_memory: int
    """Bytes."""


class Occupancy(Record, frozen=True, kw_only=True):
    """The bound and what sets it."""

    blocks: int
    """Resident on one multiprocessor."""
    share: float
    """Resident warps over the most that fit."""
    limiter: Limiter


class _Granularity(Record, frozen=True, kw_only=True):
    registers: int
    """A warp's registers are allocated in multiples of this (NVIDIA: in all; AMD: per lane)."""
    shared_memory: int
    """A block's bytes likewise."""
    reserved: int = 0
    """Bytes of shared memory that the system takes for each block."""


# cuda_occupancy.h: cudaOccRegAllocationGranularity, cudaOccSMemAllocationGranularity, and the 1 KB per block
# that CUDA reserves.
_NVIDIA = _Granularity(registers=256, shared_memory=128, reserved=1024)  # compute capability 8.0 and later
_PARTITIONS = 4  # cudaOccSubPartitionsPerMultiprocessor

# AMDGPUBaseInfo.cpp: getVGPRAllocGranule (unified register file), getLdsDwGranularity x 4.
_AMD = {
    "gfx942": _Granularity(registers=8, shared_memory=512),
    "gfx950": _Granularity(registers=8, shared_memory=1280),
}


def occupancy(target: Target, need: Resources) -> Occupancy | None:
    """The bound for one kernel on one target; None for an architecture whose rules are not known here."""
    limits = target.limits
    warps = -(-need.threads // limits["warp_size"])
    capacity = limits["threads_per_sm"] // limits["warp_size"]
    match target.kind, _AMD.get(target.architecture):
        case "cuda", _ if int(target.architecture.removeprefix("sm_")) >= 80:
            granularity, resident = _NVIDIA, _warps_by_registers_nvidia(limits, need.registers)
        case "hip", _Granularity() as granularity:
            resident = _warps_by_registers_amd(limits, need, granularity)
        case _:
            return None
    block = _round_up(need.shared_memory, granularity.shared_memory) + granularity.reserved
    bounds: dict[Limiter, int] = {
        "threads": capacity // warps,
        "blocks": limits["blocks_per_sm"] if warps > 1 or target.kind == "cuda" else capacity,
        "registers": resident // warps,
        "shared_memory": limits["shared_memory_per_sm"] // block if block else capacity,
    }
    limiter = min(bounds, key=lambda name: bounds[name])
    blocks = bounds[limiter]
    return Occupancy(blocks=blocks, share=blocks * warps / capacity, limiter=limiter)


def _warps_by_registers_nvidia(limits: dict[str, int], registers: int) -> int:
    """Registers are allocated to warps, within one of the multiprocessor's partitions."""
    warp = _round_up(max(registers, 1) * limits["warp_size"], _NVIDIA.registers)
    return limits["registers_per_sm"] // _PARTITIONS // warp * _PARTITIONS


def _warps_by_registers_amd(limits: dict[str, int], need: Resources, granularity: _Granularity) -> int:
    """Vector and scalar registers are allocated to waves, within one SIMD."""
    vector = limits["registers_per_thread"] // _round_up(max(need.registers, 1), granularity.registers)
    scalar = limits["scalar_registers_per_simd"] // max(need.scalar_registers, 1)
    return min(vector, scalar) * limits["simds_per_sm"]


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
