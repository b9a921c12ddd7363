"""Adds up the sums of programs that each multiplied a part of K, in order: equal inputs give equal bits."""

import triton
import triton.language as tl


@triton.jit
def add_parts(sums, y, total, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """sums[PARTS, total] -> y[total]."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    result = tl.zeros([BLOCK], tl.float32)
    for part in range(PARTS):
        result += tl.load(sums + part * total + at, mask=at < total, other=0.0)
    tl.store(y + at, result.to(y.dtype.element_ty), mask=at < total)
