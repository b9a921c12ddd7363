"""Narrow access to global memory: instruction mix and length of rows in, `narrow_…` out."""

from collections.abc import Iterator
from typing import Literal

from pipeline.performance.diagnosis.case import Case, evidence
from pipeline.performance.diagnosis.levers import suggest
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
    if case.kind == "cpu" or case.rows_bytes is None or case.rows_bytes % _WIDEST:
        return
    beside = sum(case.count(name) or 0 for name in _ELSEWHERE)
    yield from _narrow(case, "load", beside)
    yield from _narrow(case, "store", beside)


def _narrow(case: Case, way: Literal["load", "store"], beside: int) -> Iterator[Finding]:
    widths = _widths(case, way)
    narrow = sum(count for bits, count in widths.items() if bits <= _NARROW)
    total = sum(widths.values())
    if 2 * narrow <= total + beside:
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
