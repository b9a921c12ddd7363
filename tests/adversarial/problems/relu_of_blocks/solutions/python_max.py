"""Python's max of blocks, which the compiler takes element by element."""

import torch, triton, triton.language as tl
import torch.nn.functional as F

@triton.jit
def k(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, max(tl.load(x + i, mask=i < n), 0.0), mask=i < n)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x); n = x.numel()
        k[(triton.cdiv(n, 256),)](x, y, n, B=256)
        return y
