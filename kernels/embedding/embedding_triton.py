"""The vectors of tokens in Triton: a program copies BLOCK columns of one row. Bound by memory."""

import triton
import triton.language as tl


@triton.jit
def gather(weight, token, y, cols, BLOCK: tl.constexpr):
    """weight[classes, cols], token[rows] -> y[rows, cols]."""
    row = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    source = tl.load(token + row)
    mask = col < cols
    tl.store(y + row * cols + col, tl.load(weight + source * cols + col, mask=mask), mask=mask)


def launch(*, weight, token, y, BLOCK, num_warps):
    """weight[classes, cols], token[rows] -> y[rows, cols]."""
    rows, cols = y.shape
    if rows and cols:
        gather[(rows, triton.cdiv(cols, BLOCK))](weight, token, y, cols, BLOCK=BLOCK, num_warps=num_warps)
