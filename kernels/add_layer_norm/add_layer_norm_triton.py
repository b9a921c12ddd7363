"""Residual addition and layer normalisation in Triton, y and h = x + residual written by one kernel.

1. `single`: a program keeps whole rows in registers from the addition to the result, so x and residual are
   read once and h and y written once, as fused kernels promise (Hsu et al. 2024, arXiv:2410.10989). Limited
   by the register file: very wide rows spill.
2. `blocks`: a program walks along its rows three times, in blocks: it adds and sums, sums squared deviations,
   normalises. Any width. The later sweeps read h again, from L2 where the rows in flight fit.

Both are bound by memory bandwidth. Narrow rows leave threads idle, so ROWS of them share a program and read
weight and bias once. The row is normalised as it is stored, in float32.
"""

import triton
import triton.language as tl


@triton.jit
def add_layer_norm_single(
    x, residual, weight, bias, y, h, rows, cols, x_stride, residual_stride, eps,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """x, residual [rows, cols], weight, bias [cols] -> y, h [rows, cols]; BLOCK >= cols."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, BLOCK)
    mask = (row < rows)[:, None] & (col < cols)[None, :]
    left = tl.load(x + row[:, None] * x_stride + col[None, :], mask=mask, other=0.0).to(tl.float32)
    right = tl.load(residual + row[:, None] * residual_stride + col[None, :], mask=mask, other=0.0)
    stored = (left + right.to(tl.float32)).to(h.dtype.element_ty)
    place = row[:, None] * cols + col[None, :]
    tl.store(h + place, stored, mask=mask)
    values = stored.to(tl.float32)
    mean = tl.sum(values, axis=1, keep_dims=True) / cols
    deviation = tl.where(mask, values - mean, 0.0)
    inverse = tl.rsqrt(tl.sum(deviation * deviation, axis=1, keep_dims=True) / cols + eps)
    scale = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)
    shift = tl.load(bias + col, mask=col < cols, other=0.0).to(tl.float32)
    result = deviation * inverse * scale[None, :] + shift[None, :]
    tl.store(y + place, result.to(y.dtype.element_ty), mask=mask)


@triton.jit
def add_layer_norm_blocks(
    x, residual, weight, bias, y, h, rows, cols, x_stride, residual_stride, eps,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """x, residual [rows, cols], weight, bias [cols] -> y, h [rows, cols]."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    sums = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in tl.range(0, cols, BLOCK, num_stages=STAGES):
        col = start + tl.arange(0, BLOCK)
        mask = (row < rows)[:, None] & (col < cols)[None, :]
        left = tl.load(x + row[:, None] * x_stride + col[None, :], mask=mask, other=0.0).to(tl.float32)
        right = tl.load(residual + row[:, None] * residual_stride + col[None, :], mask=mask, other=0.0)
        stored = (left + right.to(tl.float32)).to(h.dtype.element_ty)
        tl.store(h + row[:, None] * cols + col[None, :], stored, mask=mask)
        sums += stored.to(tl.float32)
    mean = tl.sum(sums, axis=1, keep_dims=True) / cols
    # What threads stored is read by others of the same program.
    tl.debug_barrier()
    squares = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in tl.range(0, cols, BLOCK, num_stages=STAGES):
        col = start + tl.arange(0, BLOCK)
        mask = (row < rows)[:, None] & (col < cols)[None, :]
        values = tl.load(h + row[:, None] * cols + col[None, :], mask=mask, other=0.0).to(tl.float32)
        deviation = tl.where(mask, values - mean, 0.0)
        squares += deviation * deviation
    inverse = tl.rsqrt(tl.sum(squares, axis=1, keep_dims=True) / cols + eps)
    for start in tl.range(0, cols, BLOCK, num_stages=STAGES):
        col = start + tl.arange(0, BLOCK)
        mask = (row < rows)[:, None] & (col < cols)[None, :]
        place = row[:, None] * cols + col[None, :]
        values = tl.load(h + place, mask=mask, other=0.0).to(tl.float32)
        scale = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)
        shift = tl.load(bias + col, mask=col < cols, other=0.0).to(tl.float32)
        result = (values - mean) * inverse * scale[None, :] + shift[None, :]
        tl.store(y + place, result.to(y.dtype.element_ty), mask=mask)


def launch(*, x, residual, weight, bias, y, h, eps, algorithm, ROWS, BLOCK, num_warps, num_stages):
    """x, residual [rows, cols] with any row strides, weight, bias [cols] -> y, h [rows, cols]."""
    rows, cols = x.shape
    if rows == 0 or cols == 0:
        return
    grid = (triton.cdiv(rows, ROWS),)
    arguments = (x, residual, weight, bias, y, h, rows, cols, x.stride(0), residual.stride(0), eps)
    if algorithm == "single":
        width = triton.next_power_of_2(cols)
        add_layer_norm_single[grid](*arguments, ROWS=ROWS, BLOCK=width, num_warps=num_warps)
        return
    add_layer_norm_blocks[grid](*arguments, ROWS=ROWS, BLOCK=BLOCK, STAGES=num_stages, num_warps=num_warps)
