"""The lengths by an own kernel, the division by torch."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def length_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr + row, tl.sqrt(tl.sum(x * x, axis=0)))


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        length = torch.empty((x.shape[0], 1), device=x.device, dtype=x.dtype)
        length_kernel[(x.shape[0],)](x, length, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return x / length
