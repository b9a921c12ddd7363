"""Matrix units that lie idle, or are used through older instructions: counts in, findings out."""

import re
from collections.abc import Iterator

from pipeline.analyze.diagnosis.case import Case, evidence
from pipeline.analyze.diagnosis.levers import suggest
from pipeline.records.diagnosed import Finding, FindingCode

WORTH = 1.5
"""Ratio of the declared peaks above which the matrix units are worth using for the dtype."""

# Architecture -> pattern of the family that reaches its peak, and what it is called. Sources: PTX ISA 8.7,
# 'wgmma' (sm_90a) and 'tcgen05.mma' (sm_100a); AMD Instinct MI300 instruction set (2024), 'MFMA'.
_MEANT = (
    (re.compile(r"sm_10[0-3]"), re.compile(r"UTC\w*MMA"), "UTC…MMA (tcgen05)"),
    (re.compile(r"sm_90"), re.compile(r"[HIQB]GMMA"), "HGMMA (wgmma)"),
    (re.compile(r"sm_[89]\d|sm_12\d"), re.compile(r"[HIQDO]MMA"), "HMMA (mma)"),
    (re.compile(r"gfx9(08|0a|4|5)"), re.compile(r"v_s?mfma"), "v_mfma"),
)


def matrix_instructions(case: Case) -> Iterator[Finding]:
    """A product in a dtype that the matrix units know, without them or through an older family only."""
    if case.kind == "cpu" or case.unit != "matrix" or case.count("matrix") is None:
        return
    if case.matrix_gain is None or case.matrix_gain < WORTH:
        return
    if not case.count("matrix"):
        yield _none(case, case.matrix_gain)
    else:
        yield from _older(case)


def _none(case: Case, gain: float) -> Finding:
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
    meant = next((row for row in _MEANT if row[0].match(case.architecture or "")), None)
    if not names or meant is None or any(meant[1].match(name) for name in names):
        return
    listed = ", ".join(f"{count} {name}" for name, count in names.items())
    yield Finding(
        code=FindingCode.OLDER_MATRIX_INSTRUCTIONS,
        basis="binary",
        sentence=(
            f"The matrix units run through {listed}: {case.architecture} reaches its peak only with "
            f"{meant[2]}."
        ),
        evidence=evidence(matrix=(sum(names.values()), "instructions"), meant=(0, "instructions")),
        suggestions=suggest(case, ("tile", "increase"), ("warps", "increase")),
    )
