"""One step of APOLLO in Triton (Zhu et al. 2024, arXiv:2412.05270), in three launches.

1. `reduce`: a tile of r = projection^T g is summed by the matrix units (`tl.dot`), becomes moments and
   Adam's change n in registers, and of these the squares, summed over the tile's columns, are stored; so
   are those of g, which goes through the product anyway. Neither r nor n is stored.
2. `find_factors`: one program finds each column's factor and the size of the change, from sums of squares.
3. `apply`: g, times its column's factor, changes w.

The product of low rank is the only one: there is none that leads back. float32 is multiplied in full
(`ieee`).
"""

import torch
import triton
import triton.language as tl

from kernels.galore_adamw.galore_adamw_triton import low_rank, update_moments


@triton.jit
def reduce(
    projection, g, m, v, m_out, v_out, of_n, of_r, of_g, rows, cols, rank,
    beta1, beta2, one_minus_beta1, one_minus_beta2, step_size, root_factor, eps,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """projection, g, m, v -> m_out, v_out, sums of squares of_n, of_r [rank / BLOCK_M, cols], of_g[cols]."""
    part = tl.program_id(0).to(tl.int64)
    row = part * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    sums, squares = low_rank(projection, g, row, col, rows, cols, rank, BLOCK_K, STAGES, True)
    n = update_moments(
        sums, row, col, m, v, m_out, v_out, cols, rank,
        beta1, beta2, one_minus_beta1, one_minus_beta2, step_size, root_factor, eps,
    )  # fmt: skip
    inside = col < cols
    # Rows beyond the rank have no moments, so that n is 0 there.
    tl.store(of_n + part * cols + col, tl.sum(n * n, 0), mask=inside)
    tl.store(of_r + part * cols + col, tl.sum(sums * sums, 0), mask=inside)
    tl.store(of_g + col, squares, mask=inside & (part == 0))


@triton.jit
def add_parts(squares, col, cols, parts):
    """squares[parts, cols] -> their sums at `col`."""
    sums = tl.zeros([col.shape[0]], tl.float32)
    for part in tl.range(0, parts):
        sums += tl.load(squares + part * cols + col, mask=col < cols, other=0.0)
    return sums


@triton.jit
def find_factors(
    of_n, of_r, of_g, size, factor, rate_out, size_out, cols, parts, elements, rate, growth, eps,
    TENSOR: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sums of squares -> factor[cols] of g, size_out[1], and rate_out[1] with the limit that size[1] sets."""
    of_all_n = tl.zeros([BLOCK], tl.float32)
    of_all_r = tl.zeros([BLOCK], tl.float32)
    if TENSOR:
        for start in tl.range(0, cols, BLOCK):
            col = start + tl.arange(0, BLOCK)
            of_all_n += add_parts(of_n, col, cols, parts)
            of_all_r += add_parts(of_r, col, cols, parts)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in tl.range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        if TENSOR:
            found = tl.sqrt(tl.sum(of_all_n)) / (tl.sqrt(tl.sum(of_all_r)) + eps) + tl.zeros(
                [BLOCK], tl.float32
            )
        else:
            found = tl.sqrt(add_parts(of_n, col, cols, parts))
            found /= tl.sqrt(add_parts(of_r, col, cols, parts)) + eps
        squares += found * found * tl.load(of_g + col, mask=col < cols, other=0.0)
        tl.store(factor + col, found, mask=col < cols)
    new = tl.sqrt(tl.sum(squares) / elements)
    most = growth * tl.load(size)
    limit = tl.where(new > most, most / new, 1.0)
    tl.store(rate_out, rate * limit)
    tl.store(size_out, limit * new)


@triton.jit
def apply(w, g, factor, rate, w_out, cols, decay, BLOCK: tl.constexpr):
    """w, g [rows, cols], factor[cols], rate[1] -> w_out[rows, cols]."""
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    place = tl.program_id(0).to(tl.int64) * cols + col
    mask = col < cols
    values = tl.load(w + place, mask=mask, other=0.0).to(tl.float32)
    gradient = tl.load(g + place, mask=mask, other=0.0).to(tl.float32)
    change = tl.load(rate) * tl.load(factor + col, mask=mask, other=0.0) * gradient
    tl.store(w_out + place, (values - decay * values - change).to(w_out.dtype.element_ty), mask=mask)


def launch(
    *, w, projection, g, m, v, size, w_out, m_out, v_out, size_out,
    lr, beta1, beta2, eps, weight_decay, scale, growth, step, scaling,
    BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages,
):  # fmt: skip
    """w, g [rows, cols], projection[rows, rank], m, v [rank, cols], size[1] in float32 -> after the step."""
    rows, cols = w.shape
    rank = m.shape[0]
    parts = triton.cdiv(rank, BLOCK_M)
    made = {"dtype": torch.float32, "device": w.device}
    of_n, of_r = torch.empty((2, parts, cols), **made)
    of_g, factor = torch.empty((2, cols), **made)
    rate = torch.empty(1, **made)
    if cols:
        reduce[(parts, triton.cdiv(cols, BLOCK_N))](
            projection, g, m, v, m_out, v_out, of_n, of_r, of_g, rows, cols, rank,
            beta1, beta2, 1 - beta1, 1 - beta2, 1 / (1 - beta1**step), (1 - beta2**step) ** -0.5, eps,
            BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, STAGES=num_stages, num_warps=num_warps,
        )  # fmt: skip
    find_factors[(1,)](
        of_n, of_r, of_g, size, factor, rate, size_out, cols, parts, rows * cols, lr * scale, growth, eps,
        TENSOR=scaling == "tensor", BLOCK=1024, num_warps=8,
    )  # fmt: skip
    if rows and cols:
        apply[(rows, triton.cdiv(cols, 1024))](
            w, g, factor, rate, w_out, cols, lr * weight_decay, BLOCK=1024, num_warps=4
        )
