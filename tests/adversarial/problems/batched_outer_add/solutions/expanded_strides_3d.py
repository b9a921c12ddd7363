import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def tanh(x):
    t = tl.exp(-2.0 * tl.abs(x))
    r = (1.0 - t) / (1.0 + t)
    return tl.where(x < 0, -r, r)


@triton.jit
def kernel(a_ptr, b_ptr, o_ptr, M, N, a0, a1, a2, b0, b1, b2, BM: tl.constexpr, BN: tl.constexpr):
    z = tl.program_id(2)
    m = tl.program_id(1) * BM + tl.arange(0, BM)[:, None]
    n = tl.program_id(0) * BN + tl.arange(0, BN)[None, :]
    mask = (m < M) & (n < N)
    a = tl.load(a_ptr + z * a0 + m * a1 + n * a2, mask=mask, other=0.0)
    b = tl.load(b_ptr + z * b0 + m * b1 + n * b2, mask=mask, other=0.0)
    tl.store(o_ptr + (z * M + m) * N + n, tanh(a + b), mask=mask)


class ModelNew(nn.Module):
    def forward(self, a, b):
        shape = torch.broadcast_shapes(a.shape, b.shape)
        a, b = a.expand(shape), b.expand(shape)
        B, M, N = shape
        out = torch.empty(shape, dtype=a.dtype, device=a.device)
        kernel[(triton.cdiv(N, 32), triton.cdiv(M, 16), B)](a, b, out, M, N, *a.stride(), *b.stride(), BM=16, BN=32)
        return out
