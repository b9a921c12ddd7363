"""The diagnoses, in the order in which their findings are told; adding one is one module and one line."""

from pipeline.analyze.diagnosis.barriers import barrier_heavy
from pipeline.analyze.diagnosis.case import Diagnosis
from pipeline.analyze.diagnosis.ceilings import place_under_ceilings
from pipeline.analyze.diagnosis.conditions import measurement_conditions
from pipeline.analyze.diagnosis.global_access import narrow_access
from pipeline.analyze.diagnosis.matrix_units import matrix_instructions
from pipeline.analyze.diagnosis.occupancy import limited_occupancy
from pipeline.analyze.diagnosis.special_functions import special_functions
from pipeline.analyze.diagnosis.spills import spills
from pipeline.analyze.diagnosis.vectors import cpu_vectors
from pipeline.analyze.diagnosis.waves import uneven_launch
from pipeline.analyze.diagnosis.workspace import extra_memory

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
