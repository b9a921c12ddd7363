"""Atomics into memory that nobody cleared."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def split_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLITS: tl.constexpr
):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    part = tl.program_id(2)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(part * BK, K, BK * SPLITS):
        rk = start + tl.arange(0, BK)
        a = tl.load(
            a_ptr + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0
        )
        b = tl.load(
            b_ptr + rk[:, None] * N + rn[None, :], mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0
        )
        acc += tl.dot(a, b, allow_tf32=False)
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    tl.atomic_add(c_ptr + rm[:, None] * N + rn[None, :], acc, mask=mask)


class ModelNew(nn.Module):
    def forward(self, A, B):
        A, B = A.contiguous(), B.contiguous()
        M, K = A.shape
        N = B.shape[1]
        C = torch.empty((M, N), device=A.device, dtype=A.dtype)
        split_kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32), 4)](
            A, B, C, M, N, K, BM=32, BN=32, BK=32, SPLITS=4
        )
        return C
