"""Chunks of the axis add with atomics into zeros."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, n, inner, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    batch = tl.program_id(0)
    i = tl.program_id(1) * CHUNK + tl.arange(0, CHUNK)[:, None]
    p = tl.arange(0, BLOCK)
    x = tl.load(
        x_ptr + batch * n * inner + i * inner + p[None, :], mask=(i < n) & (p[None, :] < inner), other=0.0
    )
    tl.atomic_add(out_ptr + batch * inner + p, tl.sum(x, axis=0), mask=p < inner)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        assert dim == 1

    def forward(self, x):
        x = x.contiguous()
        batch, n, inner = x.shape
        out = torch.zeros((batch, 1, inner), device=x.device, dtype=x.dtype)
        sum_kernel[(batch, triton.cdiv(n, 64))](
            x, out, n, inner, CHUNK=64, BLOCK=triton.next_power_of_2(inner)
        )
        return out
