"""A linear layer through two factors of low rank in Triton: y = (x down) up.

FUSE: a program has BLOCK_M rows and a range of columns. It keeps x down, [BLOCK_M, R], in registers, where
the matrix units add it up, and multiplies it with its columns of up: what lies between the products never
travels. SPLIT programs share the same rows and compute x down each for itself, so that few rows occupy the
device.
Without FUSE, the two products are launches of matmul's kernel, with [M, R] in memory between them.

num_stages: the loads of later steps are in flight while this one multiplies.
"""

import torch
import triton
import triton.language as tl

from kernels.matmul.matmul_triton import launch as multiply


@triton.jit
def both(
    x, down, up, y, M, K, R, N, x_stride, columns,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, RANK: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """x[M, K], down[K, R], up[R, N] -> y[M, N]; RANK >= R, `columns` of y for each program."""
    m = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    r = tl.arange(0, RANK)
    rows, ranks = (m < M)[:, None], (r < R)[None, :]
    middle = tl.zeros([BLOCK_M, RANK], tl.float32)
    for start in tl.range(0, K, BLOCK_K, num_stages=STAGES):
        k = start + tl.arange(0, BLOCK_K)
        left = tl.load(x + m[:, None] * x_stride + k[None, :], mask=rows & (k < K)[None, :], other=0.0)
        right = tl.load(
            down + k.to(tl.int64)[:, None] * R + r[None, :], mask=(k < K)[:, None] & ranks, other=0.0
        )
        middle = tl.dot(left, right, middle, input_precision="ieee")
    inner = middle.to(x.dtype.element_ty)
    first = tl.program_id(1) * columns
    for start in tl.range(first, tl.minimum(first + columns, N), BLOCK_N, num_stages=STAGES):
        n = start + tl.arange(0, BLOCK_N)
        right = tl.load(
            up + r.to(tl.int64)[:, None] * N + n[None, :],
            mask=(r < R)[:, None] & (n < N)[None, :],
            other=0.0,
        )
        result = tl.dot(inner, right, input_precision="ieee")
        tl.store(y + m[:, None] * N + n[None, :], result.to(y.dtype.element_ty), mask=rows & (n < N)[None, :])


def launch(*, x, down, up, y, FUSE, BLOCK_M, BLOCK_N, BLOCK_K, SPLIT, num_warps, num_stages):
    """x[M, K] with any row stride, down[K, R], up[R, N] -> y[M, N]."""
    (M, K), (R, N) = x.shape, up.shape
    if not M or not N:
        return
    if not FUSE:
        middle = torch.empty(M, R, dtype=x.dtype, device=x.device)
        blocks = {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K, "GROUP_M": 8}
        others = {"epilogue": "none", "num_warps": num_warps, "num_stages": num_stages}
        multiply(a=x, b=down, c=middle, **blocks, **others)
        multiply(a=middle, b=up, c=y, **blocks, **others)
        return
    columns = triton.cdiv(triton.cdiv(N, SPLIT), BLOCK_N) * BLOCK_N
    both[(triton.cdiv(M, BLOCK_M), triton.cdiv(N, columns))](
        x, down, up, y, M, K, R, N, x.stride(0), columns,
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, RANK=max(16, triton.next_power_of_2(R)),
        STAGES=num_stages, num_warps=num_warps,
    )  # fmt: skip
