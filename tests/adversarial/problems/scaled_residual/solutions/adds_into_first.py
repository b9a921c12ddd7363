"""Adds into its first argument and returns that."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, alpha, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x_ptr + offsets, mask=mask) + alpha * tl.load(y_ptr + offsets, mask=mask)
    tl.store(x_ptr + offsets, value, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, y, alpha):
        add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, alpha, x.numel(), BLOCK=1024)
        return x
