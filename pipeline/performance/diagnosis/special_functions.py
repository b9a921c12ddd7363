"""Arithmetic that waits for the special-function units: the instruction mix in, `special_functions` out."""

from collections.abc import Iterator

from pipeline.performance.diagnosis.case import Case, evidence
from pipeline.records.results.diagnosed import Finding, FindingCode

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
            f"{special} special functions (exp, log, reciprocal, root) beside {plain} float32 instructions: "
            f"at a {ratio}th of the rate they take {special * ratio / max(plain, 1):.1f} times the cycles."
        ),
        evidence=evidence(
            special=(special, "instructions"),
            float32=(plain, "instructions"),
            rate=(ratio, "ratio"),
        ),
    )
