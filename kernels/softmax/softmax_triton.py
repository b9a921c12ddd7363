"""Softmax over the last axis in Triton: three forms of the same two steps, maximum and sum, then scale.

1. `single`: a program keeps whole rows in registers, so x is read once and y written once, which is all the
   traffic there must be. Limited by the register file: a row longer than some thousands of columns spills.
2. `online`: a program walks along its rows in blocks and keeps one running maximum and sum a row; when the
   maximum grows, the sum so far is rescaled (Milakov and Gimelshein 2018, arXiv:1805.02867). Any length, but
   x is read twice, and every block ends in a reduction over the whole program: a barrier each time.
3. `lanes`: the same, but every position of the block keeps its own maximum and sum, and they are merged once
   after the loop. No barrier inside the loop, paid for with a second exponential per element.

All are bound by memory bandwidth once rows are long. Short rows leave most threads idle, so ROWS of them
share a program. Accumulation is in float32; infinities and NaN go through as in PyTorch: a row that holds
+inf or NaN, or nothing but -inf, becomes NaN.
"""

import triton
import triton.language as tl


@triton.jit
def _finite(maximum):
    """0 in place of -inf, so that a row which was all masked so far adds exp(-inf - 0) = 0 and not NaN."""
    return tl.where(maximum == float("-inf"), 0.0, maximum)


@triton.jit
def _load(x, row, start, rows, cols, x_stride, BLOCK: tl.constexpr):
    """A block of x as float32, -inf outside of it."""
    col = start + tl.arange(0, BLOCK)
    mask = (row < rows)[:, None] & (col < cols)[None, :]
    block = tl.load(x + row[:, None] * x_stride + col[None, :], mask=mask, other=float("-inf"))
    return block.to(tl.float32), col, mask


@triton.jit
def softmax_single(x, y, rows, cols, x_stride, y_stride, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """x[rows, cols] -> y[rows, cols]; BLOCK >= cols."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    values, col, mask = _load(x, row, 0, rows, cols, x_stride, BLOCK)
    exponentials = tl.exp(values - tl.max(values, axis=1)[:, None])
    result = exponentials * (1.0 / tl.sum(exponentials, axis=1))[:, None]
    tl.store(y + row[:, None] * y_stride + col[None, :], result.to(y.dtype.element_ty), mask=mask)


@triton.jit
def softmax_online(
    x, y, rows, cols, x_stride, y_stride,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """x[rows, cols] -> y[rows, cols] for any cols; LANES: a maximum and sum per column of the block."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    width: tl.constexpr = BLOCK if LANES else 1
    maximum = tl.full([ROWS, width], float("-inf"), tl.float32)
    total = tl.zeros([ROWS, width], tl.float32)
    for start in tl.range(0, cols, BLOCK, num_stages=STAGES):
        values, _, _ = _load(x, row, start, rows, cols, x_stride, BLOCK)
        grown = tl.maximum(maximum, values if LANES else tl.max(values, axis=1, keep_dims=True))
        base = _finite(grown)
        exponentials = tl.exp(values - base)
        total = total * tl.exp(maximum - base)
        total += exponentials if LANES else tl.sum(exponentials, axis=1, keep_dims=True)
        maximum = grown
    if LANES:
        merged = tl.max(maximum, axis=1, keep_dims=True)
        total = tl.sum(total * tl.exp(maximum - _finite(merged)), axis=1, keep_dims=True)
        maximum = merged
    inverse = 1.0 / total
    for start in tl.range(0, cols, BLOCK, num_stages=STAGES):
        values, col, mask = _load(x, row, start, rows, cols, x_stride, BLOCK)
        result = tl.exp(values - maximum) * inverse
        tl.store(y + row[:, None] * y_stride + col[None, :], result.to(y.dtype.element_ty), mask=mask)


def launch(*, x, y, algorithm, ROWS, BLOCK, num_warps, num_stages):
    """x[rows, cols] with any row stride -> y[rows, cols]."""
    rows, cols = x.shape
    if rows == 0 or cols == 0:
        return
    grid = (triton.cdiv(rows, ROWS),)
    shape = (rows, cols, x.stride(0), y.stride(0))
    if algorithm == "single":
        width = triton.next_power_of_2(cols)
        softmax_single[grid](x, y, *shape, ROWS=ROWS, BLOCK=width, num_warps=num_warps)
        return
    softmax_online[grid](
        x, y, *shape,
        ROWS=ROWS, BLOCK=BLOCK, STAGES=num_stages, LANES=algorithm == "lanes", num_warps=num_warps,
    )  # fmt: skip
