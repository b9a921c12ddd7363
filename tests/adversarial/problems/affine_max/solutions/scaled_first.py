"""The maximum of what is scaled and shifted."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def affine_max(x_ptr, weight_ptr, bias_ptr, scale_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    scale = tl.load(scale_ptr)
    x = tl.load(x_ptr + row * n + offsets, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0)
    bias = tl.load(bias_ptr + offsets, mask=mask, other=0.0)
    y = (x * weight + bias) * scale
    y = tl.where(mask, y, -float("inf"))
    tl.store(out_ptr + row, tl.max(y, axis=0))


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        block = triton.next_power_of_2(x.shape[1])
        affine_max[(x.shape[0],)](x, self.weight, self.bias, self.scale, out, x.shape[1], BLOCK=block)
        return out
