import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, b_ptr, out_ptr, cols, stride, slope, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x_ptr + row * stride + offs) + tl.load(b_ptr + offs)
    tl.store(out_ptr + row * cols + offs, tl.where(y > 0, y, y * slope), mask=offs < cols)


class ModelNew(nn.Module):
    def __init__(self, cols, slope=0.1):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(cols))
        self.slope = slope

    def forward(self, x):
        rows, cols = x.shape
        BLOCK = 256
        pad = triton.cdiv(cols, BLOCK) * BLOCK
        xp = torch.zeros(rows, pad, dtype=x.dtype, device=x.device)
        xp[:, :cols] = x
        bp = torch.zeros(pad, dtype=x.dtype, device=x.device)
        bp[:cols] = self.bias
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        kernel[(rows, pad // BLOCK)](xp, bp, out, cols, pad, self.slope, BLOCK=BLOCK)
        return out
