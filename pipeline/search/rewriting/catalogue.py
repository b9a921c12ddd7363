"""The known rewrites by language; adding one is one module and one line here."""

from collections.abc import Mapping

from pipeline.search.rewriting import (
    cpp_fusion,
    cpp_loops,
    cpp_order,
    cpp_split,
    cpp_vectors,
    triton_fusion,
    triton_loops,
    triton_persistent,
    triton_split,
    triton_width,
)
from pipeline.search.rewriting.rewrite import Transformation

LANGUAGES: Mapping[str, Mapping[str, Transformation]] = {
    ".py": {
        "fused epilogue": triton_fusion.TRANSFORMATION,
        "split-K": triton_split.TRANSFORMATION,
        "persistent": triton_persistent.TRANSFORMATION,
        "vector width": triton_width.TRANSFORMATION,
        **triton_loops.TRANSFORMATIONS,
    },
    ".cpp": {
        "fused epilogue": cpp_fusion.TRANSFORMATION,
        "loop order of a sum": cpp_order.TRANSFORMATION,
        "vector width": cpp_vectors.TRANSFORMATION,
        "split-K": cpp_split.TRANSFORMATION,
        **cpp_loops.TRANSFORMATIONS,
    },
}
"""Suffix of a source -> what can be done to it."""
