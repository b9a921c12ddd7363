"""Gradient of softmax over the last axis in Triton: dx = y (dy - sum(y dy)) with y = softmax(x).

1. `single`: a program keeps whole rows of x and dy in registers, so each is read once and dx written once,
   which is all the traffic there must be; y is computed again, never stored. Limited by the register file.
2. `online`: a program walks along its rows in blocks with a running maximum, sum of exponentials and sum of
   their products with dy; when the maximum grows, both sums are rescaled. Any length, but x and dy are read
   twice.

Both are bound by memory bandwidth once rows are long. Short rows leave most threads idle, so ROWS of them
share a program. Accumulation is in float32; a row with +inf or NaN, or only -inf, has the gradient NaN.
"""

import triton
import triton.language as tl


@triton.jit
def _load(source, row, start, rows, cols, stride, other, BLOCK: tl.constexpr):
    """A block as float32, `other` outside of it."""
    col = start + tl.arange(0, BLOCK)
    mask = (row < rows)[:, None] & (col < cols)[None, :]
    block = tl.load(source + row[:, None] * stride + col[None, :], mask=mask, other=other)
    return block.to(tl.float32), col, mask


@triton.jit
def softmax_backward_single(
    x, dy, dx, rows, cols, x_stride, dy_stride, dx_stride, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """x, dy [rows, cols] -> dx[rows, cols]; BLOCK >= cols."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    values, col, mask = _load(x, row, 0, rows, cols, x_stride, float("-inf"), BLOCK)
    upstream, _, _ = _load(dy, row, 0, rows, cols, dy_stride, 0.0, BLOCK)
    exponentials = tl.exp(values - tl.max(values, axis=1)[:, None])
    y = exponentials * (1.0 / tl.sum(exponentials, axis=1))[:, None]
    result = y * (upstream - tl.sum(y * upstream, axis=1)[:, None])
    tl.store(dx + row[:, None] * dx_stride + col[None, :], result.to(dx.dtype.element_ty), mask=mask)


@triton.jit
def softmax_backward_online(
    x, dy, dx, rows, cols, x_stride, dy_stride, dx_stride,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """x, dy [rows, cols] -> dx[rows, cols] for any cols."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    maximum = tl.full([ROWS, 1], float("-inf"), tl.float32)
    total = tl.zeros([ROWS, 1], tl.float32)
    product = tl.zeros([ROWS, 1], tl.float32)
    for start in tl.range(0, cols, BLOCK, num_stages=STAGES):
        values, _, _ = _load(x, row, start, rows, cols, x_stride, float("-inf"), BLOCK)
        upstream, _, _ = _load(dy, row, start, rows, cols, dy_stride, 0.0, BLOCK)
        grown = tl.maximum(maximum, tl.max(values, axis=1, keep_dims=True))
        # 0 in place of -inf, so that a row which was all masked so far adds exp(-inf - 0) = 0 and not NaN.
        base = tl.where(grown == float("-inf"), 0.0, grown)
        rescale = tl.exp(maximum - base)
        exponentials = tl.exp(values - base)
        total = total * rescale + tl.sum(exponentials, axis=1, keep_dims=True)
        product = product * rescale + tl.sum(exponentials * upstream, axis=1, keep_dims=True)
        maximum = grown
    inverse = 1.0 / total
    mean = product * inverse
    for start in tl.range(0, cols, BLOCK, num_stages=STAGES):
        values, col, mask = _load(x, row, start, rows, cols, x_stride, float("-inf"), BLOCK)
        upstream, _, _ = _load(dy, row, start, rows, cols, dy_stride, 0.0, BLOCK)
        result = tl.exp(values - maximum) * inverse * (upstream - mean)
        tl.store(dx + row[:, None] * dx_stride + col[None, :], result.to(dx.dtype.element_ty), mask=mask)


def launch(*, x, dy, dx, algorithm, ROWS, BLOCK, num_warps, num_stages):
    """x, dy [rows, cols] with any row strides -> dx[rows, cols]."""
    rows, cols = x.shape
    if rows == 0 or cols == 0:
        return
    grid = (triton.cdiv(rows, ROWS),)
    arguments = (x, dy, dx, rows, cols, x.stride(0), dy.stride(0), dx.stride(0))
    if algorithm == "single":
        width = triton.next_power_of_2(cols)
        softmax_backward_single[grid](*arguments, ROWS=ROWS, BLOCK=width, num_warps=num_warps)
        return
    softmax_backward_online[grid](*arguments, ROWS=ROWS, BLOCK=BLOCK, STAGES=num_stages, num_warps=num_warps)
