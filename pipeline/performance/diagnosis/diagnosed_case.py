"""What the diagnoses look at: a result and its declaration in, one record with all known facts out."""

import math
import re
from collections.abc import Callable, Iterator
from typing import Literal

from pipeline.performance.bound_error import (
    ceiling_bound,
    declared_bandwidth_share,
    declared_bound,
    geometry_of,
)
from pipeline.performance.time_bound import Bound, Geometry
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.configuration.kernel import Tunable, TunableValue
from pipeline.records.planning.problem import Problem
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.record import Record
from pipeline.records.results.collection import Result
from pipeline.records.results.compiled import StaticFacts
from pipeline.records.results.diagnosed import Evidence, Finding, Suggestion
from pipeline.records.results.profiled import Profiled

ITEM_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "int8": 1, "uint8": 1, "int32": 4}


class Case(Record, frozen=True, kw_only=True):
    """One variant; None and empty mean that it is not known."""

    kind: DeviceKind
    architecture: str | None
    dtype: str
    unit: str
    facts: StaticFacts
    limits: dict[str, int]
    matrix_gain: float | None = None
    """Declared peak of the matrix units over that of the vector units, for the workload's dtype."""
    launch: Geometry | None = None
    bandwidth_share: float | None = None
    """Estimate: of the declared bandwidth, what the loads in flight sustain."""
    declared: Bound | None = None
    """Estimate from declared peaks."""
    ceiling: Bound | None = None
    """Estimate from measured ceilings."""
    profiled: Profiled | None = None
    rows_bytes: int | None = None
    """Greatest common divisor of the lengths of all tensors' rows, in bytes."""
    tunables: dict[str, TunableValue] = {}
    space: dict[str, Tunable] = {}

    @property
    def bound(self) -> Bound | None:
        """The one that knows more: from what was measured, if anything was."""
        return self.ceiling or self.declared

    @property
    def arithmetic_bound(self) -> bool:
        """Whether operations take longer than bytes, as far as one can know: then what slows them counts."""
        return self.bound is not None and self.bound.side == "compute"

    def count(self, name: str) -> int | None:
        """Static count of a class of instructions; None where no mix was read, 0 where it has none of it."""
        return self.facts.instructions.get(name, 0) if self.facts.instructions else None


Diagnosis = Callable[[Case], Iterator[Finding]]


def case_of(result: Result, declared: GenerateSpec | None = None) -> Case:
    """Everything that is known of a variant that compiled."""
    assert result.compiled is not None
    task = result.task
    implementation = declared.implementations.get(result.variant.implementation) if declared else None
    return Case(
        kind=task.kind,
        architecture=result.architecture,
        dtype=result.task.dtype,
        unit=task.unit,
        facts=result.compiled.facts,
        limits=task.limits,
        matrix_gain=_matrix_gain(result),
        launch=geometry_of(result),
        bandwidth_share=declared_bandwidth_share(result),
        declared=declared_bound(result),
        ceiling=ceiling_bound(result),
        profiled=result.profiled,
        rows_bytes=_rows_bytes(declared.problem) if declared else None,
        tunables=result.variant.tunables,
        space=implementation.tunables if implementation else {},
    )


def evidence(**values: tuple[float | None, str]) -> tuple[Evidence, ...]:
    """`name=(value, unit)`, in the order given; what is not known is left out."""
    return tuple(
        Evidence(name=name, value=float(value), unit=unit)
        for name, (value, unit) in values.items()
        if value is not None
    )


def _matrix_gain(result: Result) -> float | None:
    peaks = result.task.peaks
    matrix, vector = peaks.get(f"matrix_{result.task.dtype}"), peaks.get("vector_float32")
    return matrix.value / vector.value if matrix and vector and matrix.unit == vector.unit else None


def _rows_bytes(problem: Problem) -> int | None:
    """Tensors of one row's worth of bytes or less are left out: their loads are too few to count."""
    rows = [
        problem.shape(name)[-1] * ITEM_BYTES[tensor.dtype]
        for name, tensor in problem.tensors.items()
        if len(tensor.shape) > 1 and tensor.dtype in ITEM_BYTES
    ]
    return math.gcd(*rows) if rows else None


Lever = Literal["warps", "stages", "tile", "unroll", "vector"]
Direction = Literal["increase", "decrease"]

_NAMES = {
    "warps": re.compile(r"num_warps$"),
    "stages": re.compile(r"num_stages$"),
    "tile": re.compile(r"(block|tile)(_|$)", re.IGNORECASE),
    "unroll": re.compile(r"unroll$", re.IGNORECASE),
    "vector": re.compile(r"(lanes|vectorize)$", re.IGNORECASE),
}
_TECHNIQUES = {
    "warps": frozenset[str](),
    "stages": frozenset({"software_pipelining"}),
    "tile": frozenset({"register_blocking", "row_blocking"}),
    "unroll": frozenset({"unrolling"}),
    "vector": frozenset({"vectorization"}),
}


def suggest(case: Case, *wanted: tuple[Lever, Direction]) -> tuple[Suggestion, ...]:
    """Tunables of the variant that can still go the wanted way."""
    found = []
    for lever, direction in wanted:
        for name, tunable in case.space.items():
            if name in case.tunables and _is(lever, name, tunable.technique):
                values = _beyond(case.tunables[name], tunable, direction)
                if values:
                    way = "switch" if isinstance(case.tunables[name], bool) else direction
                    found.append(
                        Suggestion(tunable=name, technique=tunable.technique, direction=way, values=values)
                    )
    return tuple(found)


def _is(lever: Lever, name: str, technique: str | None) -> bool:
    return _NAMES[lever].match(name) is not None or technique in _TECHNIQUES[lever]


def _beyond(
    value: TunableValue, tunable: Tunable, direction: Direction
) -> tuple[bool | int | float | str, ...]:
    """Declared values on the wanted side of the present one, the nearest first."""
    if isinstance(value, str):
        return ()
    numbers = [each for each in tunable.values if not isinstance(each, str)]
    if direction == "increase":
        return tuple(sorted(each for each in numbers if each > value))
    return tuple(sorted((each for each in numbers if each < value), reverse=True))
