"""What the instructions of a binary show: `barriers`, `special_functions`, `no_vectors`, …"""

from collections.abc import Iterator

from pipeline.backends.devices.device_registry import executes_on_host
from pipeline.backends.machine_code.matrix_instructions import family_of, matrix_use
from pipeline.performance.diagnosis.diagnosed_case import Case, evidence, suggest
from pipeline.performance.time_bound import vector_width
from pipeline.records.results.diagnosed import Finding, FindingCode

MANY = 0.1
"""Share of barriers among barriers and instructions that compute or load, above which it is reported."""

_WORK = ("matrix", "fma", "float", "special", "load_shared", "store_shared", "async_copy", "tma")


def barrier_heavy(case: Case) -> Iterator[Finding]:
    """One barrier for less than nine instructions of work: a static count, loops not unrolled."""
    barriers = case.count("barrier")
    if executes_on_host(case.kind) or not barriers:
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


WORTH = 1.5
"""Ratio of the declared peaks above which the matrix units are worth using for the dtype."""


def matrix_instructions(case: Case) -> Iterator[Finding]:
    """A product in a dtype that the matrix units know, without them or through an older family only."""
    if executes_on_host(case.kind) or case.unit != "matrix" or case.count("matrix") is None:
        return
    if case.matrix_gain is None or case.matrix_gain < WORTH:
        return
    if not case.count("matrix"):
        yield _no_matrix_units(case, case.matrix_gain)
    else:
        yield from _older(case)


def _no_matrix_units(case: Case, gain: float) -> Finding:
    fma = case.count("fma") or 0
    return Finding(
        code=FindingCode.NO_MATRIX_INSTRUCTIONS,
        basis="binary",
        sentence=(
            f"A matrix product without matrix instructions, in {fma} multiply-adds: the declared peak of the "
            f"matrix units is {gain:.1f} times as high."
        ),
        evidence=evidence(matrix=(0, "instructions"), fma=(fma, "instructions"), peaks=(gain, "ratio")),
        gain_at_most=gain if case.arithmetic_bound else None,
        suggestions=suggest(case, ("tile", "increase")),
    )


def _older(case: Case) -> Iterator[Finding]:
    """Needs the counts by name; without them nothing is said."""
    names = case.facts.matrix
    architecture = case.architecture or ""
    meant = family_of(architecture, case.dtype)
    if meant is None or matrix_use(architecture, case.dtype, names) != "older":
        return
    listed = ", ".join(f"{count} {name}" for name, count in names.items())
    yield Finding(
        code=FindingCode.OLDER_MATRIX_INSTRUCTIONS,
        basis="binary",
        sentence=(
            f"The matrix units run through {listed}: {case.architecture} reaches its peak only with "
            f"{meant.called}."
        ),
        evidence=evidence(matrix=(sum(names.values()), "instructions"), meant=(0, "instructions")),
        suggestions=suggest(case, ("tile", "increase"), ("warps", "increase")),
    )


# Architecture -> float32 results over special-function results a cycle and multiprocessor. Source: CUDA C++
# Programming Guide 12.9 (2025), table 'Throughput of Native Arithmetic Instructions': 64 or 128 over 16.
_RATIO = {"sm_80": 4, "sm_86": 8, "sm_89": 8, "sm_90": 8, "sm_100": 8, "sm_103": 8, "sm_120": 8}


def special_functions(case: Case) -> Iterator[Finding]:
    """The units for exp, log, reciprocals need more cycles than those for float32, where arithmetic bounds.

    Static counts: loops are taken to hold the same mix as the rest.
    """
    ratio = _RATIO.get((case.architecture or "").rstrip("af"))
    special = case.count("special")
    if ratio is None or not special or not case.arithmetic_bound:
        return
    plain = (case.count("fma") or 0) + (case.count("float") or 0)
    if special * ratio <= plain:
        return
    if not plain and case.count("matrix"):
        return  # nothing computes with them in float32: they are the reciprocals of integer divisions
    yield Finding(
        code=FindingCode.SPECIAL_FUNCTIONS,
        basis="binary",
        sentence=(
            f"{special} special functions (exp, log, reciprocal, root) and {plain} float32 instructions: "
            f"at a {ratio}th of the rate they take {special * ratio / max(plain, 1):.1f} times the cycles."
        ),
        evidence=evidence(
            special=(special, "instructions"),
            float32=(plain, "instructions"),
            rate=(ratio, "ratio"),
        ),
    )


_SCALAR = 32  # bits of a float32
STACK = 0.1
"""Share of vector accesses to the stack among all loads and stores, above which it is reported."""


def cpu_vectors(case: Case) -> Iterator[Finding]:
    """Fewer than scalar instructions, narrower than the processor has, or more than fit its registers."""
    if not executes_on_host(case.kind) or not case.facts.instructions:
        return
    used, available = vector_width(case.facts), case.limits.get("vector_bits")
    if used is not None and available is not None:
        if (case.count("scalar_float") or 0) > _vector_instructions(case):
            yield _no_vectors(case, available)
        elif used < available:
            yield _narrow_vectors(case, used, available)
    yield from _stack_traffic(case)


def _no_vectors(case: Case, available: int) -> Finding:
    scalar, vectors = case.count("scalar_float") or 0, _vector_instructions(case)
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


def _vector_instructions(case: Case) -> int:
    return sum(case.count(f"vector_{bits}") or 0 for bits in (128, 256, 512))


def _narrow_vectors(case: Case, used: int, available: int) -> Finding:
    return Finding(
        code=FindingCode.NARROW_VECTORS,
        basis="binary",
        sentence=f"Computes on vectors of {used} bit at most where the processor has {available}.",
        evidence=evidence(width=(used, "bit"), available=(available, "bit")),
        gain_at_most=available / used if case.arithmetic_bound else None,
        suggestions=suggest(case, ("vector", "increase")),
    )


def _stack_traffic(case: Case) -> Iterator[Finding]:
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
