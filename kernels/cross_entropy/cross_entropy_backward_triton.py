"""Gradient of cross entropy in Triton: dlogits = (softmax(logits) - [class is the target]) dloss.

A program computes the maximum and the sum of ROWS rows again, in one pass or two, and writes their gradients
in another one: the softmax is never stored (Hsu et al. 2024, arXiv:2410.10989). Bound by memory bandwidth;
the logits come from L2 after the first pass where the rows in flight fit. Arithmetic is float32.
"""

import triton
import triton.language as tl

from kernels.cross_entropy.cross_entropy_triton import exponential_sum


@triton.jit
def cross_entropy_backward(
    logits, target, dloss, dlogits, rows, classes, stride,
    ONLINE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """logits[rows, classes], target, dloss [rows] -> dlogits[rows, classes]."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    top, total = exponential_sum(logits, row, rows, classes, stride, ONLINE, ROWS, BLOCK, STAGES)
    wanted = tl.load(target + row, mask=row < rows, other=0)[:, None]
    upstream = tl.load(dloss + row, mask=row < rows, other=0.0).to(tl.float32)[:, None]
    for start in tl.range(0, classes, BLOCK, num_stages=STAGES):
        col = start + tl.arange(0, BLOCK)
        mask = (row < rows)[:, None] & (col < classes)[None, :]
        values = tl.load(logits + row[:, None] * stride + col[None, :], mask=mask, other=0.0).to(tl.float32)
        share = tl.exp(values - top) / total * upstream
        gradient = tl.where(col[None, :] == wanted, share - upstream, share)
        place = dlogits + row[:, None] * classes + col[None, :]
        tl.store(place, gradient.to(dlogits.dtype.element_ty), mask=mask)


def launch(*, logits, target, dloss, dlogits, algorithm, ROWS, BLOCK, num_warps, num_stages):
    """logits[rows, classes] with any row stride, target, dloss [rows] -> dlogits[rows, classes]."""
    rows, classes = logits.shape
    if rows:
        cross_entropy_backward[(triton.cdiv(rows, ROWS),)](
            logits, target, dloss, dlogits, rows, classes, logits.stride(0),
            ONLINE=algorithm == "online", ROWS=ROWS, BLOCK=BLOCK, STAGES=num_stages, num_warps=num_warps,
        )  # fmt: skip
