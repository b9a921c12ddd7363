"""Static facts of what one launch compiled. In: kernels as the compiler left them. Out: StaticFacts."""

import re
from collections import Counter

import msgspec

from pipeline.backends.machine_code import amdgcn, sass
from pipeline.backends.machine_code.amd_code_object import kernel_metadata
from pipeline.backends.machine_code.cubin_resources import kernel_resources
from pipeline.backends.machine_code.elf import code_sections
from pipeline.backends.machine_code.warp_occupancy import Resources, occupancy
from pipeline.backends.triton.offline_driver import BuiltKernel
from pipeline.records.configuration.hardware import Target
from pipeline.records.results.compiled import StaticFacts

_ENTRY = "Compiling entry function"
_SPILLS = re.compile(r"bytes stack frame, (\d+) bytes spill stores")
_SPILLED_REGISTER = 4  # bytes


class _Description(msgspec.Struct, frozen=True):
    """What we read of Triton's description of a binary."""

    name: str


def facts_of(kernels: tuple[BuiltKernel, ...], target: Target) -> StaticFacts:
    """One kernel's facts; of several: resources of the one with the lowest occupancy, sums of code."""
    single = [_facts(kernel, target) for kernel in kernels]
    code: Counter[str] = Counter()
    matrix: Counter[str] = Counter()
    for facts in single:
        code.update(facts.instructions)
        matrix.update(facts.matrix)
    tightest = min(single, key=lambda facts: (facts.occupancy_bound is None, facts.occupancy_bound))
    return StaticFacts(
        code_bytes=sum(facts.code_bytes for facts in single if facts.code_bytes is not None),
        registers=tightest.registers,
        scalar_registers=tightest.scalar_registers,
        spills=tightest.spills,
        shared_memory=tightest.shared_memory,
        threads_per_block=tightest.threads_per_block,
        occupancy_bound=tightest.occupancy_bound,
        occupancy_limiter=tightest.occupancy_limiter,
        resident_blocks=tightest.resident_blocks,
        local_memory=tightest.local_memory,
        barriers=tightest.barriers,
        matrix=dict(sorted(matrix.items())),
        instructions=dict(sorted(code.items())),
    )


def _facts(kernel: BuiltKernel, target: Target) -> StaticFacts:
    threads = kernel.warps * kernel.warp_size
    if target.kind == "hip":
        return _amd(kernel, target, threads)
    return _nvidia(kernel, target, threads)


def _nvidia(kernel: BuiltKernel, target: Target, threads: int) -> StaticFacts:
    """Everything from the cubin but the spills, which only ptxas tells apart from other local memory (-v)."""
    content = kernel.binary.read_bytes()
    found = kernel_resources(content)[_name_in_binary(kernel)]
    counts = sass.count(kernel.binary)
    bound = None
    if found.registers is not None:
        need = Resources(threads=threads, registers=found.registers, shared_memory=kernel.shared_memory)
        bound = occupancy(target, need)
    return StaticFacts(
        code_bytes=sum(len(code) for code in code_sections(content).values()),
        registers=found.registers,
        spills=_spills(kernel.printed),
        shared_memory=kernel.shared_memory,
        threads_per_block=threads,
        occupancy_bound=bound.share if bound else None,
        occupancy_limiter=bound.limiter if bound else None,
        resident_blocks=bound.blocks if bound else None,
        local_memory=found.stack_frame,
        barriers=found.barriers,
        matrix=counts.matrix,
        instructions=counts.classes,
    )


def _name_in_binary(kernel: BuiltKernel) -> str:
    """What the compiler called it: a kernel with a `repr` of its own has another name than its function."""
    return msgspec.json.decode(kernel.files["json"].read_bytes(), type=_Description).name


def _spills(printed: str) -> int | None:
    """Bytes of the spill stores, of the kernel and of the functions in it that were not inlined."""
    found = _SPILLS.findall(printed.rpartition(_ENTRY)[2])
    return sum(map(int, found)) if found else None


def _amd(kernel: BuiltKernel, target: Target, threads: int) -> StaticFacts:
    """Resources from the code object's metadata, instructions from the assembly text."""
    found = kernel_metadata(kernel.binary.read_bytes())[_name_in_binary(kernel)]
    text = kernel.files["amdgcn"].read_text()
    need = Resources(
        threads=threads,
        registers=found.registers,
        scalar_registers=found.scalar_registers,
        shared_memory=kernel.shared_memory,
    )
    bound = occupancy(target, need)
    return StaticFacts(
        code_bytes=found.code_bytes,
        registers=found.registers,
        scalar_registers=found.scalar_registers,
        spills=found.spilled_registers * _SPILLED_REGISTER,
        shared_memory=kernel.shared_memory,
        threads_per_block=threads,
        occupancy_bound=bound.share if bound else None,
        occupancy_limiter=bound.limiter if bound else None,
        resident_blocks=bound.blocks if bound else None,
        local_memory=found.private_memory,
        matrix=amdgcn.matrix_instructions(text),
        instructions=amdgcn.instruction_mix(text),
    )
