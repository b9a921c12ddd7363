"""What limits a variant, derived only from facts at hand: a result in, findings out."""

from pipeline.performance.diagnosis.diagnosed_case import Diagnosis, case_of
from pipeline.performance.diagnosis.instruction_mix import (
    barrier_heavy,
    cpu_vectors,
    matrix_instructions,
    special_functions,
)
from pipeline.performance.diagnosis.measurement import measurement_conditions, place_under_ceilings
from pipeline.performance.diagnosis.memory_access import extra_memory, narrow_access, spills
from pipeline.performance.diagnosis.occupancy import limited_occupancy, uneven_launch
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.results.collection import Result
from pipeline.records.results.diagnosed import Finding

DIAGNOSES: dict[str, Diagnosis] = {
    "ceilings": place_under_ceilings,
    "spills": spills,
    "matrix_units": matrix_instructions,
    "waves": uneven_launch,
    "occupancy": limited_occupancy,
    "global_access": narrow_access,
    "special_functions": special_functions,
    "barriers": barrier_heavy,
    "vectors": cpu_vectors,
    "workspace": extra_memory,
    "conditions": measurement_conditions,
}
"""Name -> diagnosis, in the order in which findings are listed."""


def diagnose(result: Result, declared: GenerateSpec | None = None) -> tuple[Finding, ...]:
    """All findings of a variant that compiled, in the order of the registry.

    `declared` is what the plan wrote for generate; without it there are no suggestions, and no findings that
    need the shapes of the tensors.
    """
    if result.compiled is None:
        return ()
    case = case_of(result, declared)
    return tuple(finding for diagnosis in DIAGNOSES.values() for finding in diagnosis(case))


__all__ = ["DIAGNOSES", "diagnose"]
