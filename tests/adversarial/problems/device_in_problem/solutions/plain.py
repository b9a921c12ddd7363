"""One program for each block."""

import torch, triton, triton.language as tl
import torch.nn.functional as F

@triton.jit
def k(x, y, n, C, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0) + i % C, mask=i < n)
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.shift = torch.nn.Parameter(torch.randn(1))
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x); n = x.numel()
        k[(triton.cdiv(n, 256),)](x, y, n, x.shape[1], B=256)
        return y
