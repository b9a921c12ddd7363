"""Avoidable traffic to memory: `narrow_loads`, `spills`, `local_arrays`, `workspace`, …"""

from collections.abc import Iterator
from typing import Literal

from pipeline.backends.devices.device_registry import executes_on_host
from pipeline.performance.diagnosis.diagnosed_case import Case, evidence, suggest
from pipeline.records.results.diagnosed import Finding, FindingCode

_NARROW = 32  # bits a thread: a warp of 32 then moves one 128-byte line with each instruction
_WIDEST = 16  # bytes: the widest access of one thread
_COPIED = 128  # bits a thread that an asynchronous copy moves at most
_ELSEWHERE = ("async_copy", "tma")
"""Classes that load past the registers; where they do the loading, the few plain loads do not matter."""


def narrow_access(case: Case) -> Iterator[Finding]:
    """More than half of the accesses move 32 bits or less although the rows allow 128.

    Whether neighbouring threads touch neighbouring addresses (coalescing) is not in the code's static form,
    so nothing is said about it.
    """
    if executes_on_host(case.kind) or case.rows_bytes is None or case.rows_bytes % _WIDEST:
        return
    elsewhere = sum(case.count(name) or 0 for name in _ELSEWHERE)
    yield from _narrow(case, "load", elsewhere)
    yield from _narrow(case, "store", elsewhere)


def _narrow(case: Case, way: Literal["load", "store"], elsewhere: int) -> Iterator[Finding]:
    widths = _widths(case, way)
    narrow = sum(count for bits, count in widths.items() if bits <= _NARROW)
    total = sum(widths.values())
    if 2 * narrow <= total + elsewhere:
        return
    moved = sum(bits * count for bits, count in widths.items() if bits <= _NARROW)
    if way == "load" and moved <= _COPIED * (case.count("async_copy") or 0):
        return  # the plain loads are those of the edges, element by element
    code = FindingCode.NARROW_LOADS if way == "load" else FindingCode.NARROW_STORES
    listed = ", ".join(f"{count} of {bits}" for bits, count in sorted(widths.items()))
    yield Finding(
        code=code,
        basis="binary",
        sentence=(
            f"{narrow} of {total} global {way}s move {_NARROW} bits a thread or less ({listed} bits), where "
            f"rows of a multiple of {_WIDEST} B allow 128: more instructions for the same bytes."
        ),
        evidence=evidence(
            narrow=(narrow, "instructions"),
            total=(total, "instructions"),
            widest=(max(widths), "bit"),
        ),
        suggestions=suggest(
            case, ("tile", "increase"), ("warps", "decrease"), ("vector", "increase"), ("unroll", "increase")
        ),
    )


def _widths(case: Case, way: str) -> dict[int, int]:
    prefix = f"{way}_global_"
    return {
        int(name.removeprefix(prefix)): count
        for name, count in case.facts.instructions.items()
        if name.startswith(prefix)
    }


def spills(case: Case) -> Iterator[Finding]:
    """Any spilled byte is reported: it costs a store and a load through L1, in a loop many times."""
    facts = case.facts
    if facts.spills:
        registers = f" at {facts.registers} registers" if facts.registers is not None else ""
        numbers = {"spills": (facts.spills, "B per thread")}
        if facts.registers is not None:
            numbers["registers"] = (facts.registers, "per thread")
        if case.count("local"):
            numbers["local_instructions"] = (case.count("local") or 0, "instructions")
        yield Finding(
            code=FindingCode.SPILLS,
            basis="binary",
            sentence=f"Spills {facts.spills:,} B per thread{registers}: values travel through local memory.",
            evidence=evidence(**numbers),
            suggestions=suggest(
                case,
                ("warps", "increase"),
                ("tile", "decrease"),
                ("unroll", "decrease"),
                ("stages", "decrease"),
            ),
        )
    elif facts.spills == 0 and facts.local_memory:
        yield Finding(
            code=FindingCode.LOCAL_ARRAYS,
            basis="binary",
            sentence=(
                f"Keeps {facts.local_memory:,} B per thread in local memory without spilling: arrays that "
                "are indexed at run time cannot stay in registers."
            ),
            evidence=evidence(local_memory=(facts.local_memory, "B per thread")),
        )


MUCH = 0.1
"""Share of the inputs' and outputs' bytes above which it is reported."""


def extra_memory(case: Case) -> Iterator[Finding]:
    """A call that allocates on the device writes there and reads back what the formula does not count."""
    memory = case.profiled.memory if case.profiled else None
    taken = memory.steady.device_bytes if memory else None
    formula = memory.formula_bytes if memory else None
    if formula is None or taken is None or taken <= MUCH * formula:
        return
    yield Finding(
        code=FindingCode.WORKSPACE,
        basis="measured",
        sentence=(
            f"Takes {taken / 1e6:,.1f} MB on the device in addition to its tensors of "
            f"{formula / 1e6:,.1f} MB: traffic that the kernel's formula does not know."
        ),
        evidence=evidence(device_bytes=(taken, "B"), formula_bytes=(formula, "B")),
    )
