"""Threads that wait for each other often: the instruction mix in, `barriers` out."""

from collections.abc import Iterator

from pipeline.performance.diagnosis.case import Case, evidence
from pipeline.performance.diagnosis.levers import suggest
from pipeline.records.results.diagnosed import Finding, FindingCode

MANY = 0.1
"""Share of barriers among barriers and instructions that compute or load, above which it is told."""

_WORK = ("matrix", "fma", "float", "special", "load_shared", "store_shared", "async_copy", "tma")


def barrier_heavy(case: Case) -> Iterator[Finding]:
    """One barrier for less than nine instructions of work: a static count, loops not unrolled."""
    barriers = case.count("barrier")
    if case.kind == "cpu" or not barriers:
        return
    work = sum(case.count(name) or 0 for name in _WORK)
    work += sum(count for name, count in case.facts.instructions.items() if "_global_" in name)
    if barriers <= MANY * (barriers + work):
        return
    yield Finding(
        code=FindingCode.BARRIERS,
        basis="binary",
        sentence=(
            f"{barriers} barriers and waits for {work} instructions that compute or move data: threads "
            "wait for each other often."
        ),
        evidence=evidence(barriers=(barriers, "instructions"), work=(work, "instructions")),
        suggestions=suggest(case, ("tile", "increase"), ("warps", "decrease")),
    )
