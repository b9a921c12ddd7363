"""Root-mean-square normalisation of rows in Triton.

1. `single`: a program keeps whole rows in registers between the sum of squares and the scaling, so x is read
   once and y written once. Limited by the register file: very wide rows spill.
2. `two_pass`: a program walks along its rows twice, in blocks, with one partial sum for each position of the
   block, so that the loop has no reduction and no barrier. Any width. The second pass reads x again, from L2
   where the rows in flight fit: with CACHE_HINTS the first pass asks for them to be kept (evict_last) and the
   second one releases them (evict_first).

Both are bound by memory bandwidth. Narrow rows leave threads idle, so ROWS of them share a program and read
the weight once. Accumulation is in float32; NaN and infinity go through as in PyTorch. The formula is that of
Zhang and Sennrich 2019, arXiv:1910.07467.
"""

import triton
import triton.language as tl


@triton.jit
def rms_norm_single(
    x, weight, y, rows, cols, x_stride, y_stride, eps,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """x[rows, cols], weight[cols] -> y[rows, cols]; BLOCK >= cols."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, BLOCK)
    mask = (row < rows)[:, None] & (col < cols)[None, :]
    values = tl.load(x + row[:, None] * x_stride + col[None, :], mask=mask, other=0.0).to(tl.float32)
    scale = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)
    inverse = tl.rsqrt(tl.sum(values * values, axis=1, keep_dims=True) / cols + eps)
    result = values * inverse * scale[None, :]
    tl.store(y + row[:, None] * y_stride + col[None, :], result.to(y.dtype.element_ty), mask=mask)


@triton.jit
def rms_norm_two_pass(
    x, weight, y, rows, cols, x_stride, y_stride, eps,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr, KEEP: tl.constexpr, RELEASE: tl.constexpr,
):  # fmt: skip
    """x[rows, cols], weight[cols] -> y[rows, cols]; KEEP, RELEASE: the passes' eviction policies."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    squares = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in tl.range(0, cols, BLOCK, num_stages=STAGES):
        col = start + tl.arange(0, BLOCK)
        mask = (row < rows)[:, None] & (col < cols)[None, :]
        place = x + row[:, None] * x_stride + col[None, :]
        values = tl.load(place, mask=mask, other=0.0, eviction_policy=KEEP).to(tl.float32)
        squares += values * values
    inverse = tl.rsqrt(tl.sum(squares, axis=1, keep_dims=True) / cols + eps)
    for start in tl.range(0, cols, BLOCK, num_stages=STAGES):
        col = start + tl.arange(0, BLOCK)
        mask = (row < rows)[:, None] & (col < cols)[None, :]
        place = x + row[:, None] * x_stride + col[None, :]
        values = tl.load(place, mask=mask, other=0.0, eviction_policy=RELEASE).to(tl.float32)
        scale = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)
        result = values * inverse * scale[None, :]
        tl.store(y + row[:, None] * y_stride + col[None, :], result.to(y.dtype.element_ty), mask=mask)


def launch(*, x, weight, y, eps, algorithm, ROWS, BLOCK, CACHE_HINTS, num_warps, num_stages):
    """x[rows, cols] with any row stride, weight[cols] -> y[rows, cols]."""
    rows, cols = x.shape
    if rows == 0 or cols == 0:
        return
    grid = (triton.cdiv(rows, ROWS),)
    arguments = (x, weight, y, rows, cols, x.stride(0), y.stride(0), eps)
    if algorithm == "single":
        width = triton.next_power_of_2(cols)
        rms_norm_single[grid](*arguments, ROWS=ROWS, BLOCK=width, num_warps=num_warps)
        return
    keep, release = ("evict_last", "evict_first") if CACHE_HINTS else ("", "")
    rms_norm_two_pass[grid](
        *arguments,
        ROWS=ROWS, BLOCK=BLOCK, STAGES=num_stages, KEEP=keep, RELEASE=release, num_warps=num_warps,
    )  # fmt: skip
