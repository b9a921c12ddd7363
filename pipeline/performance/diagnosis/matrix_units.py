"""Matrix units that lie idle, or are used through older instructions: counts in, findings out."""

from collections.abc import Iterator

from pipeline.backends.machine_code.matrix_instructions import family_of, matrix_use
from pipeline.performance.diagnosis.case import Case, evidence
from pipeline.performance.diagnosis.levers import suggest
from pipeline.records.results.diagnosed import Finding, FindingCode

WORTH = 1.5
"""Ratio of the declared peaks above which the matrix units are worth using for the dtype."""


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
