"""The diagnoses, in the order in which their findings are told; adding one is one module and one line."""

from pipeline.performance.diagnosis.barriers import barrier_heavy
from pipeline.performance.diagnosis.case import Diagnosis
from pipeline.performance.diagnosis.ceilings import place_under_ceilings
from pipeline.performance.diagnosis.conditions import measurement_conditions
from pipeline.performance.diagnosis.global_access import narrow_access
from pipeline.performance.diagnosis.matrix_units import matrix_instructions
from pipeline.performance.diagnosis.occupancy import limited_occupancy
from pipeline.performance.diagnosis.special_functions import special_functions
from pipeline.performance.diagnosis.spills import spills
from pipeline.performance.diagnosis.vectors import cpu_vectors
from pipeline.performance.diagnosis.waves import uneven_launch
from pipeline.performance.diagnosis.workspace import extra_memory

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
