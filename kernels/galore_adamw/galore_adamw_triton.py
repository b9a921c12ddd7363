"""One step of GaLore in Triton (Zhao et al. 2024, arXiv:2403.03507), in two launches.

1. `project`: a tile of r = projection^T g is summed by the matrix units (`tl.dot`), and becomes moments and
   Adam's change n while it is in registers. n, of as many rows as the rank, is what goes through memory.
2. `apply`: a tile of projection n is summed, and changes its tile of w at once: the change, as large as w, is
   never stored.

n is rounded to the type of w, as matrix units need it. float32 is multiplied in full (`ieee`).
num_stages > 1: the loads of later steps are in flight while this one multiplies. Accumulation is in float32.
"""

import torch
import triton
import triton.language as tl

from kernels.adamw.adamw_triton import change


@triton.jit
def low_rank(
    projection, g, row, col, rows, cols, rank,
    BLOCK_K: tl.constexpr, STAGES: tl.constexpr, SQUARES: tl.constexpr,
):  # fmt: skip
    """A tile of projection^T g for projection[rows, rank], g[rows, cols], and the sums of g's squares."""
    k = tl.arange(0, BLOCK_K)
    sums = tl.zeros([row.shape[0], col.shape[0]], tl.float32)
    squares = tl.zeros([col.shape[0]], tl.float32)
    for start in tl.range(0, rows, BLOCK_K, num_stages=STAGES):
        depth = (start + k).to(tl.int64)
        inside = (depth < rows)[:, None]
        left = tl.load(
            projection + depth[:, None] * rank + row[None, :], mask=inside & (row < rank)[None, :], other=0.0
        )
        right = tl.load(
            g + depth[:, None] * cols + col[None, :], mask=inside & (col < cols)[None, :], other=0.0
        )
        sums = tl.dot(tl.trans(left), right, sums, input_precision="ieee")
        if SQUARES:
            squares += tl.sum(right.to(tl.float32) * right.to(tl.float32), 0)
    return sums, squares


@triton.jit
def update_moments(
    sums, row, col, m, v, m_out, v_out, cols, rank,
    beta1, beta2, one_minus_beta1, one_minus_beta2, step_size, root_factor, eps,
):  # fmt: skip
    """A tile of r, m, v [rank, cols] -> m_out, v_out, and what Adam changes by."""
    place = row[:, None] * cols + col[None, :]
    mask = (row < rank)[:, None] & (col < cols)[None, :]
    first = beta1 * tl.load(m + place, mask=mask, other=0.0) + one_minus_beta1 * sums
    tl.store(m_out + place, first, mask=mask)
    second = beta2 * tl.load(v + place, mask=mask, other=0.0) + one_minus_beta2 * sums * sums
    tl.store(v_out + place, second, mask=mask)
    return change(first, second, step_size, root_factor, eps)


@triton.jit
def project(
    projection, g, m, v, n, m_out, v_out, rows, cols, rank,
    beta1, beta2, one_minus_beta1, one_minus_beta2, step_size, root_factor, eps,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """projection[rows, rank], g[rows, cols], m, v [rank, cols] -> n, m_out, v_out [rank, cols]."""
    row = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    sums, _ = low_rank(projection, g, row, col, rows, cols, rank, BLOCK_K, STAGES, False)
    result = update_moments(
        sums, row, col, m, v, m_out, v_out, cols, rank,
        beta1, beta2, one_minus_beta1, one_minus_beta2, step_size, root_factor, eps,
    )  # fmt: skip
    mask = (row < rank)[:, None] & (col < cols)[None, :]
    tl.store(n + row[:, None] * cols + col[None, :], result.to(n.dtype.element_ty), mask=mask)


@triton.jit
def apply(
    w, projection, n, w_out, rows, cols, rank, rate, decay,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """w[rows, cols], projection[rows, rank], n[rank, cols] -> w_out[rows, cols]."""
    row = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in tl.range(0, rank, BLOCK_K, num_stages=STAGES):
        depth = (start + k).to(tl.int64)
        left = tl.load(
            projection + row[:, None] * rank + depth[None, :],
            mask=(row < rows)[:, None] & (depth < rank)[None, :],
            other=0.0,
        )
        right = tl.load(
            n + depth[:, None] * cols + col[None, :],
            mask=(depth < rank)[:, None] & (col < cols)[None, :],
            other=0.0,
        )
        sums = tl.dot(left, right, sums, input_precision="ieee")
    place = row[:, None] * cols + col[None, :]
    mask = (row < rows)[:, None] & (col < cols)[None, :]
    values = tl.load(w + place, mask=mask, other=0.0).to(tl.float32)
    result = values - decay * values - rate * sums
    tl.store(w_out + place, result.to(w_out.dtype.element_ty), mask=mask)


def launch(
    *, w, projection, g, m, v, w_out, m_out, v_out, lr, beta1, beta2, eps, weight_decay, scale, step,
    BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages,
):  # fmt: skip
    """w, g [rows, cols], projection[rows, rank], m, v [rank, cols] in float32 -> w_out, m_out, v_out."""
    rows, cols = w.shape
    rank = m.shape[0]
    if not rank or not cols:
        return
    n = torch.empty((rank, cols), dtype=w.dtype, device=w.device)
    blocks = {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K}
    strips = triton.cdiv(cols, BLOCK_N)
    project[(triton.cdiv(rank, BLOCK_M), strips)](
        projection, g, m, v, n, m_out, v_out, rows, cols, rank,
        beta1, beta2, 1 - beta1, 1 - beta2, 1 / (1 - beta1**step), (1 - beta2**step) ** -0.5, eps,
        **blocks, STAGES=num_stages, num_warps=num_warps,
    )  # fmt: skip
    if rows:
        apply[(triton.cdiv(rows, BLOCK_M), strips)](
            w, projection, n, w_out, rows, cols, rank, lr * scale, lr * weight_decay,
            **blocks, STAGES=num_stages, num_warps=num_warps,
        )  # fmt: skip
