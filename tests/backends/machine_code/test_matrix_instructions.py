"""The table of meant matrix instructions, and what it says of kernels."""

import pytest

from pipeline.backends.machine_code.matrix_instructions import FAMILIES, matrix_use
from pipeline.backends.registry import backend
from tests.backends.triton.triton_jobs import ROOT, TARGETS, declared_job, target


@pytest.mark.parametrize("hardware", TARGETS)
def test_every_gpu_target_is_in_the_table(hardware):
    """A declared target without an entry would never be judged."""
    families = FAMILIES[target(hardware).architecture]
    assert {"float16", "bfloat16"} <= set(families)
    assert all("20" in family.source for family in families.values())


@pytest.mark.parametrize(
    ("architecture", "dtype", "counts", "expected"),
    [
        ("sm_90", "bfloat16", {"HGMMA": 2}, "meant"),
        ("sm_90", "bfloat16", {"HMMA": 16}, "older"),
        ("sm_90", "bfloat16", {}, "none"),
        ("sm_90", "float32", {}, None),
        ("sm_80", "float16", {"HMMA": 16}, "meant"),
        ("sm_100", "float16", {"HMMA": 16}, "older"),
        ("sm_100", "float8_e4m3fn", {"UTCQMMA": 1}, "meant"),
        ("gfx942", "bfloat16", {"v_mfma_f32_32x32x8_bf16": 4}, "meant"),
        ("gfx942", "float32", {"v_mfma_f32_32x32x2_f32": 4}, "meant"),
        ("gfx950", "bfloat16", {"v_mfma_f32_32x32x16_bf16": 4}, "meant"),
        ("gfx950", "bfloat16", {"v_mfma_f32_32x32x8_bf16_1k": 4}, "older"),
        ("x86-64-v4", "bfloat16", {}, None),
    ],
)
def test_verdicts(architecture, dtype, counts, expected):
    """Meant, older, none; and nothing where no matrix unit is meant for the type."""
    assert matrix_use(architecture, dtype, counts) == expected


def test_a_tile_too_flat_for_warpgroups_falls_back(tmp_path):
    """16 rows do not fill a warpgroup: on sm_90 Triton takes the older instruction, and the fact says so."""
    flat = {"BLOCK_M": 16, "BLOCK_N": 64}
    facts = backend("triton").compile(declared_job("matmul", "h200", **flat), ROOT, tmp_path).facts
    assert matrix_use("sm_90", "float16", facts.matrix) == "older"
    assert facts.matrix.keys() == {"HMMA"}
