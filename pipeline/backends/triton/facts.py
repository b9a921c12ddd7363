"""Static facts of what one launch compiled. In: kernels as the compiler left them. Out: StaticFacts."""

import re
from collections import Counter

from pipeline.backends.machine_code import amdgcn, sass
from pipeline.backends.machine_code.elf import code_sections
from pipeline.backends.machine_code.occupancy import Resources, occupancy
from pipeline.backends.triton.offline import BuiltKernel
from pipeline.records.compiled import StaticFacts
from pipeline.records.hardware import Target

_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SPILLED_REGISTER = 4  # bytes


def facts_of(kernels: tuple[BuiltKernel, ...], target: Target) -> StaticFacts:
    """One kernel's facts; of several: resources of the one with the lowest occupancy, sums of code."""
    single = [_facts(kernel, target) for kernel in kernels]
    code: Counter[str] = Counter()
    for facts in single:
        code.update(facts.instructions)
    tightest = min(single, key=lambda facts: (facts.occupancy_bound is None, facts.occupancy_bound))
    return StaticFacts(
        code_bytes=sum(facts.code_bytes for facts in single),
        registers=tightest.registers,
        scalar_registers=tightest.scalar_registers,
        spills=tightest.spills,
        shared_memory=tightest.shared_memory,
        threads_per_block=tightest.threads_per_block,
        occupancy_bound=tightest.occupancy_bound,
        occupancy_limiter=tightest.occupancy_limiter,
        instructions=dict(sorted(code.items())),
    )


def _facts(kernel: BuiltKernel, target: Target) -> StaticFacts:
    threads = kernel.warps * kernel.warp_size
    if target.kind == "hip":
        return _amd(kernel, target, threads)
    return _nvidia(kernel, target, threads)


def _nvidia(kernel: BuiltKernel, target: Target, threads: int) -> StaticFacts:
    """Registers and spills as ptxas printed them (-v), code and instructions from the cubin."""
    registers = _last(_REGISTERS, kernel.printed)
    bound = None
    if registers is not None:
        need = Resources(threads=threads, registers=registers, shared_memory=kernel.shared_memory)
        bound = occupancy(target, need)
    return StaticFacts(
        code_bytes=sum(len(code) for code in code_sections(kernel.binary.read_bytes()).values()),
        registers=registers,
        spills=_last(_STACK, kernel.printed),
        shared_memory=kernel.shared_memory,
        threads_per_block=threads,
        occupancy_bound=bound.share if bound else None,
        occupancy_limiter=bound.limiter if bound else None,
        instructions=sass.instruction_mix(kernel.binary),
    )


def _amd(kernel: BuiltKernel, target: Target, threads: int) -> StaticFacts:
    """Everything from the assembly text, whose end is the code object's metadata."""
    text = kernel.files["amdgcn"].read_text()
    found = amdgcn.resources(text)
    need = Resources(
        threads=threads,
        registers=found["vgpr_count"],
        scalar_registers=found["sgpr_count"],
        shared_memory=kernel.shared_memory,
    )
    bound = occupancy(target, need)
    return StaticFacts(
        code_bytes=found["code_bytes"],
        registers=found["vgpr_count"],
        scalar_registers=found["sgpr_count"],
        spills=found["vgpr_spill_count"] * _SPILLED_REGISTER,
        shared_memory=kernel.shared_memory,
        threads_per_block=threads,
        occupancy_bound=bound.share if bound else None,
        occupancy_limiter=bound.limiter if bound else None,
        instructions=amdgcn.instruction_mix(text),
    )


def _last(pattern: re.Pattern[str], text: str) -> int | None:
    found = list(pattern.finditer(text))
    return int(found[-1][1]) if found else None
