"""One associative scan over the padded row."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def scan_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr + row * n + offsets, tl.associative_scan(x, 0, add), mask=offsets < n)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        scan_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
