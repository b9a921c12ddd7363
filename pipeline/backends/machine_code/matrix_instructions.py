"""Whether the matrix instructions meant for an architecture are there. In: their counts. Out: a verdict.

A newer architecture also runs its predecessors' matrix instructions, at a fraction of its peak: a kernel that
was compiled without the newer ones is right and slow, which nothing but its machine code shows.
"""

import re
from typing import Literal

from pipeline.records.record import Record

MatrixUse = Literal["meant", "older", "none"]

_CUDA = "NVIDIA, CUDA Binary Utilities 13.1 (2026), section 'Instruction Set Reference'"
_CDNA3 = "AMD Instinct MI300 Instruction Set Architecture (2024), section 'Matrix Arithmetic Instructions'"
_CDNA4 = "AMD Instinct CDNA4 Instruction Set Architecture (2025), section 'Matrix Arithmetic Instructions'"


class MatrixFamily(Record, frozen=True, kw_only=True):
    """Matrix instructions of one element type on one architecture."""

    meant: str
    """Regular expression over whole names: those that reach the peak."""
    called: str
    """For people."""
    source: str


def _family(meant: str, source: str, called: str | None = None) -> MatrixFamily:
    return MatrixFamily(meant=meant, called=called or meant, source=source)


_AMPERE = {
    "float16": _family("HMMA", _CUDA),
    "bfloat16": _family("HMMA", _CUDA),
    "int8": _family("IMMA", _CUDA),
    "float64": _family("DMMA", _CUDA),
}
_MFMA_16 = _family(r"v_s?mfma\w*_f32_(32x32x8|16x16x16)_?b?f16(_1k)?", _CDNA3, "v_mfma_f32_16x16x16")
_MFMA_16_WIDE = _family(r"v_s?mfma\w*_f32_(32x32x16|16x16x32)_b?f16", _CDNA4, "v_mfma_f32_16x16x32")

# Architecture -> element type -> what is meant for it. An element type that is missing has no matrix unit
# there: NVIDIA multiplies float32 by its vector units, as tf32 would be another precision.
FAMILIES: dict[str, dict[str, MatrixFamily]] = {
    "sm_80": _AMPERE,
    "sm_89": {
        **{name: _AMPERE[name] for name in ("float16", "bfloat16", "int8")},
        "float8_e4m3fn": _family("QMMA", _CUDA),
        "float8_e5m2": _family("QMMA", _CUDA),
    },
    "sm_90": {
        "float16": _family("HGMMA", _CUDA, "HGMMA (wgmma)"),
        "bfloat16": _family("HGMMA", _CUDA, "HGMMA (wgmma)"),
        "int8": _family("IGMMA", _CUDA),
        "float8_e4m3fn": _family("QGMMA", _CUDA),
        "float8_e5m2": _family("QGMMA", _CUDA),
        "float64": _family("DMMA", _CUDA),
    },
    "sm_100": {
        "float16": _family("UTCHMMA", _CUDA, "UTCHMMA (tcgen05.mma)"),
        "bfloat16": _family("UTCHMMA", _CUDA, "UTCHMMA (tcgen05.mma)"),
        "int8": _family("UTCIMMA", _CUDA),
        "float8_e4m3fn": _family("UTCQMMA", _CUDA),
        "float8_e5m2": _family("UTCQMMA", _CUDA),
        "float64": _family("DMMA", _CUDA),
    },
    "gfx942": {
        "float16": _MFMA_16,
        "bfloat16": _MFMA_16,
        "float32": _family(r"v_mfma_f32_\w+_x?f32", _CDNA3, "v_mfma_f32_…_f32"),
        "float64": _family(r"v_mfma_f64_\w+", _CDNA3, "v_mfma_f64_…"),
    },
    "gfx950": {
        "float16": _MFMA_16_WIDE,
        "bfloat16": _MFMA_16_WIDE,
        "float32": _family(r"v_mfma_f32_\w+_f32", _CDNA4, "v_mfma_f32_…_f32"),
        "float64": _family(r"v_mfma_f64_\w+", _CDNA4, "v_mfma_f64_…"),
    },
}


def family_of(architecture: str, dtype: str) -> MatrixFamily | None:
    """What is meant for an element type, `sm_90a` being sm_90; None where there is no matrix unit for it."""
    return FAMILIES.get(re.sub(r"^(sm_\d+)[af]$", r"\1", architecture), {}).get(dtype)


def matrix_use(architecture: str, dtype: str, counts: dict[str, int]) -> MatrixUse | None:
    """Verdict on a kernel whose work is matrix products; None where `dtype` has no matrix unit."""
    family = family_of(architecture, dtype)
    if family is None:
        return None
    if any(re.fullmatch(family.meant, name) for name in counts):
        return "meant"
    return "older" if counts else "none"
