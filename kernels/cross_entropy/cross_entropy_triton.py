"""Cross entropy in Triton: a program walks over the logits of ROWS rows and writes their losses.

1. `two_pass`: maximum, then exponentials; the second pass reads the row again, from L2 where it fits.
2. `online`: one pass in which the sum is scaled when the maximum grows (Milakov and Gimelshein 2018,
   arXiv:1805.02867), for each position of the block, so that the loop has no reduction.

Nothing of the size of the logits is written (Hsu et al. 2024, arXiv:2410.10989). Bound by memory bandwidth.
Accumulation is in float32.
"""

import triton
import triton.language as tl


@triton.jit
def exponential_sum(
    x, row, rows, classes, stride,
    ONLINE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """The maximum of rows of x[rows, classes], each [ROWS, 1], and the sum of exponentials relative to it."""
    place = x + row[:, None] * stride
    # Finite, so that a position that has seen nothing but -infinity scales by exp(0), not by exp(NaN).
    largest = tl.full([ROWS, BLOCK], -3.4028234663852886e38, tl.float32)
    sums = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in tl.range(0, classes, BLOCK, num_stages=STAGES):
        col = start + tl.arange(0, BLOCK)
        mask = (row < rows)[:, None] & (col < classes)[None, :]
        values = tl.load(place + col[None, :], mask=mask, other=float("-inf")).to(tl.float32)
        larger = tl.maximum(largest, values)
        if ONLINE:
            sums = sums * tl.exp(largest - larger) + tl.exp(values - larger)
        largest = larger
    top = tl.max(largest, axis=1, keep_dims=True)
    if ONLINE:
        return top, tl.sum(sums * tl.exp(largest - top), axis=1, keep_dims=True)
    for start in tl.range(0, classes, BLOCK, num_stages=STAGES):
        col = start + tl.arange(0, BLOCK)
        mask = (row < rows)[:, None] & (col < classes)[None, :]
        values = tl.load(place + col[None, :], mask=mask, other=float("-inf")).to(tl.float32)
        sums += tl.exp(values - top)
    return top, tl.sum(sums, axis=1, keep_dims=True)


@triton.jit
def cross_entropy(
    logits, target, loss, rows, classes, stride,
    ONLINE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """logits[rows, classes], target[rows] -> loss[rows]."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    top, total = exponential_sum(logits, row, rows, classes, stride, ONLINE, ROWS, BLOCK, STAGES)
    wanted = tl.load(target + row, mask=row < rows, other=0)
    score = tl.load(logits + row * stride + wanted, mask=row < rows, other=0.0).to(tl.float32)
    result = tl.log(total) + (top - score[:, None])
    tl.store(loss + row[:, None], result.to(loss.dtype.element_ty), mask=(row < rows)[:, None])


def launch(*, logits, target, loss, algorithm, ROWS, BLOCK, num_warps, num_stages):
    """logits[rows, classes] with any row stride, target[rows] -> loss[rows]."""
    rows, classes = logits.shape
    if rows:
        cross_entropy[(triton.cdiv(rows, ROWS),)](
            logits, target, loss, rows, classes, logits.stride(0),
            ONLINE=algorithm == "online", ROWS=ROWS, BLOCK=BLOCK, STAGES=num_stages, num_warps=num_warps,
        )  # fmt: skip
