"""What limits a variant, derived only from facts at hand: a result in, findings out."""

from pipeline.performance.diagnosis.case import case_of
from pipeline.performance.diagnosis.rules import DIAGNOSES
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.results.collection import Result
from pipeline.records.results.diagnosed import Finding


def diagnose(result: Result, declared: GenerateSpec | None = None) -> tuple[Finding, ...]:
    """All findings of a variant that compiled, in the order of the registry.

    `declared` is what the plan wrote for generate; without it there are no suggestions, and no findings that
    need the shapes of the tensors.
    """
    if result.compiled is None:
        return ()
    case = case_of(result, declared)
    return tuple(finding for diagnosis in DIAGNOSES.values() for finding in diagnosis(case))


__all__ = ["diagnose"]
