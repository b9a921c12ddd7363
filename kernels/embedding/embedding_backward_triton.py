"""Gradient of the matrix that the vectors of tokens are rows of, in Triton, without atomics.

`clear` writes zeros to all of it, which takes most of the time: it is much larger than the gradients that
come in. In `add_up`, the first row that has a token is the one that adds up all rows with it, in float32
and always in one order: each row looks through the tokens, in blocks of ROWS, and reads only the gradients
that are its own.
"""

import triton
import triton.language as tl


@triton.jit
def clear(dweight, total, BLOCK: tl.constexpr):
    """dweight[total] = 0."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(dweight + at, tl.zeros([BLOCK], dweight.dtype.element_ty), mask=at < total)


@triton.jit
def add_up(token, dy, dweight, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """token[rows], dy[rows, cols] -> the rows of dweight[classes, cols] that have gradients."""
    row = tl.program_id(0)
    mine = tl.load(token + row)
    earlier = 0
    for start in tl.range(0, row, ROWS):
        at = start + tl.arange(0, ROWS)
        others = tl.load(token + at, mask=at < row, other=-1)
        earlier += tl.sum((others == mine).to(tl.int32))
    if earlier == 0:
        col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        inside = col < cols
        sums = tl.load(dy + row.to(tl.int64) * cols + col, mask=inside, other=0.0).to(tl.float32)
        for start in tl.range(row + 1, rows, ROWS):
            at = start + tl.arange(0, ROWS)
            same = tl.load(token + at, mask=at < rows, other=-1) == mine
            if tl.sum(same.to(tl.int32)) > 0:
                place = at.to(tl.int64)[:, None] * cols + col[None, :]
                found = tl.load(dy + place, mask=same[:, None] & inside[None, :], other=0.0)
                sums += tl.sum(found.to(tl.float32), 0)
        tl.store(dweight + mine * cols + col, sums.to(dweight.dtype.element_ty), mask=inside)


def launch(*, weight, token, dy, dweight, ROWS, BLOCK, num_warps):
    """weight, which is not read, token[rows], dy[rows, cols] -> dweight[classes, cols]."""
    del weight
    (rows, cols), total = dy.shape, dweight.numel()
    if total:
        clear[(triton.cdiv(total, 4096),)](dweight, total, BLOCK=4096, num_warps=8)
    if rows and cols:
        add_up[(rows, triton.cdiv(cols, BLOCK))](
            token, dy, dweight, rows, cols, ROWS=ROWS, BLOCK=BLOCK, num_warps=num_warps
        )
