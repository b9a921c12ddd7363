"""The known rewrites of Triton sources; adding one is one module and one line here."""

from collections.abc import Mapping

from pipeline.backends.language import TRITON
from pipeline.search.rewriting import (
    triton_fusion,
    triton_loops,
    triton_persistent,
    triton_split,
    triton_width,
)
from pipeline.search.rewriting.rewrite import Transformation

LANGUAGE = TRITON
"""What the rewrites read and write."""
TRANSFORMATIONS: Mapping[str, Transformation] = {
    "fused epilogue": triton_fusion.TRANSFORMATION,
    "split-K": triton_split.TRANSFORMATION,
    "persistent": triton_persistent.TRANSFORMATION,
    "vector width": triton_width.TRANSFORMATION,
    **triton_loops.TRANSFORMATIONS,
}
