"""How a CPU's vectors are used: the instruction mix in, `no_vectors`, `stack_traffic`, … out."""

from collections.abc import Iterator

from pipeline.performance.bound.of_variant import vector_width
from pipeline.performance.diagnosis.case import Case, evidence
from pipeline.performance.diagnosis.levers import suggest
from pipeline.records.results.diagnosed import Finding, FindingCode

_SCALAR = 32  # bits of a float32
STACK = 0.1
"""Share of vector accesses to the stack among all loads and stores, above which it is told."""


def cpu_vectors(case: Case) -> Iterator[Finding]:
    """Fewer than scalar instructions, narrower than the processor has, or more than fit its registers."""
    if case.kind != "cpu" or not case.facts.instructions:
        return
    used, available = vector_width(case.facts), case.limits.get("vector_bits")
    if used is not None and available is not None:
        if (case.count("scalar_float") or 0) > _vectors(case):
            yield _none(case, available)
        elif used < available:
            yield _narrow(case, used, available)
    yield from _stack(case)


def _none(case: Case, available: int) -> Finding:
    scalar, vectors = case.count("scalar_float") or 0, _vectors(case)
    return Finding(
        code=FindingCode.NO_VECTORS,
        basis="binary",
        sentence=(
            f"{scalar} instructions on single floats, {vectors} on vectors: the processor computes "
            f"{available // _SCALAR} floats at once."
        ),
        evidence=evidence(
            scalar=(scalar, "instructions"),
            vector=(vectors, "instructions"),
            available=(available, "bit"),
        ),
        gain_at_most=available / _SCALAR if case.arithmetic_bound else None,
        suggestions=suggest(case, ("vector", "increase")),
    )


def _vectors(case: Case) -> int:
    return sum(case.count(f"vector_{bits}") or 0 for bits in (128, 256, 512))


def _narrow(case: Case, used: int, available: int) -> Finding:
    return Finding(
        code=FindingCode.NARROW_VECTORS,
        basis="binary",
        sentence=f"Computes on vectors of {used} bit at most where the processor has {available}.",
        evidence=evidence(width=(used, "bit"), available=(available, "bit")),
        gain_at_most=available / used if case.arithmetic_bound else None,
        suggestions=suggest(case, ("vector", "increase")),
    )


def _stack(case: Case) -> Iterator[Finding]:
    stack = case.count("vector_stack") or 0
    accesses = (case.count("load") or 0) + (case.count("store") or 0)
    if stack <= STACK * accesses:
        return
    yield Finding(
        code=FindingCode.STACK_TRAFFIC,
        basis="binary",
        sentence=(
            f"{stack} of {accesses} loads and stores move vectors to or from the stack: more values are "
            "alive than the registers hold."
        ),
        evidence=evidence(stack=(stack, "instructions"), accesses=(accesses, "instructions")),
        suggestions=suggest(case, ("tile", "decrease"), ("unroll", "decrease")),
    )
