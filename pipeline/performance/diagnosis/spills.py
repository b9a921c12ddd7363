"""Registers that did not suffice: static facts in, `spills` or `local_arrays` out."""

from collections.abc import Iterator

from pipeline.performance.diagnosis.case import Case, evidence
from pipeline.performance.diagnosis.levers import suggest
from pipeline.records.results.diagnosed import Finding, FindingCode


def spills(case: Case) -> Iterator[Finding]:
    """Any spilled byte is told: each costs a store and a load through the L1 cache, in a loop many times."""
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
