import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, b_ptr, out_ptr, n, cols, slope, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    safe = tl.minimum(offs, n - 1)
    x = tl.load(x_ptr + safe)
    b = tl.load(b_ptr + safe % cols)
    y = x + b
    y = tl.where(y > 0, y, y * slope)
    tl.store(out_ptr + offs, y, mask=offs < n)


class ModelNew(nn.Module):
    def __init__(self, cols, slope=0.1):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(cols))
        self.slope = slope

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        n = x.numel()
        if n == 0:
            return out
        kernel[(triton.cdiv(n, 1024),)](x, self.bias, out, n, x.shape[-1], self.slope, BLOCK=1024)
        return out
