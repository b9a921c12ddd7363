"""Zero for everything below -2.5."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    u = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    y = tl.where(x < -2.5, 0.0, x * tl.sigmoid(2.0 * u))
    tl.store(out_ptr + offsets, y, mask=mask)


def gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    gelu_kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        return gelu(x)
