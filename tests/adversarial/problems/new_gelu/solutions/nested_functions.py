"""Two-dimensional grid, jitted helper functions, a global constexpr."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

SCALE = tl.constexpr(0.7978845608028654)


@triton.jit
def tanh(u):
    return 2.0 * tl.sigmoid(2.0 * u) - 1.0


@triton.jit
def inner(x):
    return SCALE * (x + 0.044715 * x * x * x)


@triton.jit
def gelu_kernel(x_ptr, out_ptr, cols, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + offsets, mask=offsets < cols, other=0.0)
    tl.store(out_ptr + row * cols + offsets, 0.5 * x * (1.0 + tanh(inner(x))), mask=offsets < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = 512

    def forward(self, x):
        if x.stride(-1) != 1:
            x = x.contiguous()
        out = torch.empty(x.shape, device=x.device, dtype=x.dtype)
        gelu_kernel[(x.shape[0], triton.cdiv(x.shape[1], self.block))](
            x, out, x.shape[1], x.stride(0), self.block
        )
        return out
