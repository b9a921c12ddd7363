"""Squares added with atomics in a first launch, division in a second."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def squares_kernel(x_ptr, total_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + offsets, mask=offsets < n, other=0.0)
    tl.atomic_add(total_ptr + row, tl.sum(x * x, axis=0))


@triton.jit
def divide_kernel(x_ptr, total_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr + row * n + offsets, x * tl.rsqrt(tl.load(total_ptr + row)), mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, n = x.shape
        total = torch.zeros(rows, device=x.device, dtype=torch.float32)
        out = torch.empty_like(x)
        squares_kernel[(rows, triton.cdiv(n, 256))](x, total, n, BLOCK=256)
        divide_kernel[(rows, triton.cdiv(n, 256))](x, total, out, n, BLOCK=256)
        return out
