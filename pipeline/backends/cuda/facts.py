"""Static facts of a cubin and one launch of it. In: what NVRTC left, the geometry. Out: StaticFacts."""

import re
from pathlib import Path

from pipeline.backends.backend import CompileJob
from pipeline.backends.cuda.launch_geometry import LaunchGeometry
from pipeline.backends.machine_code import sass
from pipeline.backends.machine_code.cubin_resources import KernelResources
from pipeline.backends.machine_code.elf import code_sections
from pipeline.backends.machine_code.warp_occupancy import Resources, occupancy
from pipeline.records.configuration.hardware import Target
from pipeline.records.record import Record
from pipeline.records.results.compiled import StaticFacts

_SPILLS = r"Function properties for {}\n[^\n]*?(\d+) bytes spill stores"


class Binary(Record, frozen=True, kw_only=True):
    """What compile left."""

    file: Path
    need: KernelResources
    log: str
    """With what ptxas says of each kernel (-v)."""


def static_facts(binary: Binary, geometry: LaunchGeometry, job: CompileJob) -> StaticFacts:
    """Resources of the entry with the geometry of the workload's launch, size and mix of all code."""
    need = binary.need
    shared = own_shared_memory(need) + geometry.shared_memory
    counts = sass.count(binary.file)
    bound = None
    if geometry.threads and need.registers is not None:
        resources = Resources(threads=geometry.threads, registers=need.registers, shared_memory=shared)
        bound = occupancy(job.target, resources)
    return StaticFacts(
        code_bytes=sum(len(code) for code in code_sections(binary.file.read_bytes()).values()),
        registers=need.registers,
        spills=spills(job.implementation.entry, binary.log),
        shared_memory=shared,
        threads_per_block=geometry.threads,
        occupancy_bound=bound.share if bound else None,
        occupancy_limiter=bound.limiter if bound else None,
        resident_blocks=bound.blocks if bound else None,
        local_memory=need.stack_frame,
        barriers=need.barriers,
        matrix=counts.matrix,
        instructions=counts.classes,
    )


def spills(kernel: str, log: str) -> int | None:
    """Bytes that ptxas says (-v) a kernel stores to local memory for want of registers."""
    found = re.search(_SPILLS.format(re.escape(kernel)), log)
    return int(found[1]) if found else None


def beyond_limits(geometry: LaunchGeometry, need: KernelResources, target: Target) -> str | None:
    """Why the target's driver would refuse the launch, found without it; None where it would not."""
    shared = own_shared_memory(need) + geometry.shared_memory
    for what, got, limit in (
        ("shared memory", shared, "shared_memory_per_block"),
        ("threads of a block", geometry.threads, "threads_per_block"),
        ("registers of a block", geometry.threads * (need.registers or 0), "registers_per_sm"),
    ):
        if got > target.limits[limit]:
            return f"{what}: got {got}, {target.architecture} has {target.limits[limit]}"
    return None if geometry.threads else "threads of a block: got 0, expected at least 1"


def own_shared_memory(need: KernelResources) -> int:
    """Static shared memory of the kernel's own, bytes."""
    return need.static_shared - need.reserved_shared
