"""Columns of static facts: what is derived from the binary, and what is absent."""

import msgspec
import pytest

from pipeline.performance.metrics import BINARY_FACTS
from pipeline.performance.metrics.binary_facts import fma_share, use_of_matrix_units, vector_bits
from pipeline.records.results.compiled import StaticFacts
from pipeline.report.machine_code.code_views import one, stored


def row(result):
    """All columns of facts."""
    return {column.name: column.value(result) for column in BINARY_FACTS}


def test_estimates_are_named_so():
    """What is computed from limits, not read from the binary, says estimate in its name and meaning."""
    estimates = {column.name for column in BINARY_FACTS if column.meaning.startswith("Estimate")}
    assert estimates == {"estimate_occupancy", "estimate_occupancy_limiter", "estimate_resident_blocks"}
    assert estimates == {column.name for column in BINARY_FACTS if column.name.startswith("estimate_")}


def test_facts_of_a_gpu(code_root):
    """Numbers of the binary; a CPU's columns are empty."""
    found = row(one(stored(code_root), ["hardware=h200", "default=true"]))
    assert (found["local_memory"], found["barriers"], found["spills"]) == (0, 1, 0)
    assert (found["matrix"], found["matrix_use"]) == ("HGMMA 2", "meant")
    assert found["estimate_resident_blocks"] * found["threads_per_block"] <= 2048
    assert found["vector_bits"] is found["fma_share"] is found["vector_extensions"] is None


def test_facts_of_a_cpu(code_root):
    """A CPU has vectors and a stack, no registers per thread and no matrix unit of a GPU."""
    result = one(stored(code_root), ["hardware=cpu"])
    if not result.compiled.facts.instructions:
        pytest.skip("needs binutils")
    found = row(result)
    assert found["vector_bits"] in (128, 256, 512)
    assert 0 <= found["fma_share"] <= 1
    assert found["local_memory"] > 0
    wider = msgspec.structs.replace(result, features=("avx2", "avx512f", "amx_tile", "bmi1"))
    unused = row(wider)["vector_extensions_unused"].split(", ")
    assert "amx_tile" in unused and "bmi1" not in unused
    assert not set(unused) & set(result.compiled.facts.extensions)
    assert found["matrix"] is found["matrix_use"] is found["barriers"] is None


def test_no_verdict_without_matrix_work(code_root):
    """A kernel whose formula counts vector operations is not blamed for having no matrix instructions."""
    result = one(stored(code_root), ["hardware=h200", "default=true"])
    vector = msgspec.structs.replace(result, task=msgspec.structs.replace(result.task, unit="vector"))
    full = msgspec.structs.replace(result, task=msgspec.structs.replace(result.task, dtype="float32"))
    assert use_of_matrix_units(result) == "meant"
    assert use_of_matrix_units(vector) is None
    assert use_of_matrix_units(full) is None


def test_derived_numbers():
    """Widest vectors and fused share from the classes; absent where the classes are."""
    facts = StaticFacts(
        code_bytes=1,
        instructions={"vector_128": 3, "vector_512": 1, "vector_stack": 2, "fma": 3, "float_arithmetic": 4},
    )
    assert (vector_bits(facts), fma_share(facts)) == (512, 0.75)
    unknown = StaticFacts(code_bytes=1, instructions={"vector_scalable": 3})
    assert vector_bits(unknown) is fma_share(unknown) is None
