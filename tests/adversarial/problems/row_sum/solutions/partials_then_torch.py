"""Partial sums by a kernel, the few that remain by torch.sum."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, n, inner, parts, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    batch = tl.program_id(0)
    part = tl.program_id(1)
    i = part * CHUNK + tl.arange(0, CHUNK)[:, None]
    p = tl.arange(0, BLOCK)
    x = tl.load(
        x_ptr + batch * n * inner + i * inner + p[None, :], mask=(i < n) & (p[None, :] < inner), other=0.0
    )
    tl.store(out_ptr + (batch * parts + part) * inner + p, tl.sum(x, axis=0), mask=p < inner)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        batch, n, inner = x.shape
        parts = triton.cdiv(n, 64)
        partial = torch.empty((batch, parts, inner), device=x.device, dtype=x.dtype)
        sum_kernel[(batch, parts)](x, partial, n, inner, parts, CHUNK=64, BLOCK=triton.next_power_of_2(inner))
        return torch.sum(partial, dim=1, keepdim=True)
