import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, b_ptr, out_ptr, rows, cols, slope, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    # rows and columns past the edge repeat the last one, so no masks at all
    r = tl.minimum(tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), rows - 1)
    c = tl.minimum(tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N), cols - 1)
    offs = r[:, None] * cols + c[None, :]
    y = tl.load(x_ptr + offs) + tl.load(b_ptr + c)[None, :]
    tl.store(out_ptr + offs, tl.maximum(y, 0.0) + slope * tl.minimum(y, 0.0))


class ModelNew(nn.Module):
    def __init__(self, cols, slope=0.1):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(cols))
        self.slope = slope

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        rows, cols = x.shape
        kernel[(triton.cdiv(rows, 16), triton.cdiv(cols, 128))](x, self.bias, out, rows, cols, self.slope,
                                                                 BLOCK_M=16, BLOCK_N=128)
        return out
