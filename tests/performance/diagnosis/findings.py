"""Findings of made-up variants, by code."""

from typing import Any

from pipeline.performance.diagnosis import diagnose
from pipeline.records.configuration.kernel import Implementation, Tensor, Tunable
from pipeline.records.configuration.optimization import Optimization
from pipeline.records.configuration.search_settings import Search
from pipeline.records.planning.problem import Problem
from pipeline.records.planning.specs import Build, GenerateSpec
from pipeline.records.results.collection import Result
from pipeline.records.results.diagnosed import Finding

MATRIX = ("M", "N")
SPACE = {
    "BLOCK_M": Tunable(values=(32, 64, 128), default=64),
    "num_warps": Tunable(values=(2, 4, 8), default=4),
    "num_stages": Tunable(values=(1, 3, 4), default=3, technique="software_pipelining"),
}


def declared(columns: int = 1024, dtype: str = "float16", space: dict[str, Tunable] = SPACE) -> GenerateSpec:
    """What the plan says: rows of so many elements, and a space of three tunables."""
    tensors = {
        "a": Tensor(role="input", shape=MATRIX, dtype=dtype),
        "bias": Tensor(role="input", shape=("one",), dtype=dtype),
        "c": Tensor(role="output", shape=MATRIX, dtype=dtype),
    }
    problem = Problem(
        kernel="matmul", dimensions={"M": 64, "N": columns, "one": 1}, tensors=tensors, scalars={},
        attributes={}, element=dtype,
    )  # fmt: skip
    implementation = Implementation(backend="triton", tunables=space, origin="test", licence="none")
    return GenerateSpec(
        kernel="matmul",
        implementations={"triton": implementation},
        source_digests={},
        problem=problem,
        limits={},
        optimization=Optimization(name="", description="", free="all"),
        search=Search(name="", description="", strategy="grid"),
        build=Build(code="0", toolchain={}),
    )


def found(result: Result, **plan: Any) -> dict[str, Finding]:
    """Code -> finding."""
    return {str(finding.code): finding for finding in diagnose(result, declared(**plan))}


def numbers(finding: Finding) -> dict[str, float]:
    """Name -> value of its evidence."""
    return {entry.name: entry.value for entry in finding.evidence}


def suggested(finding: Finding) -> dict[str, tuple[str, tuple[object, ...]]]:
    """Tunable -> direction and values."""
    return {entry.tunable: (entry.direction, entry.values) for entry in finding.suggestions}
