"""A kernel that is made in a function and uses what that has."""

import torch, triton, triton.language as tl
import torch.nn.functional as F

@triton.jit
def square(v): return v * v
def make(function):
    TWO: tl.constexpr = tl.constexpr(2)
    @triton.jit
    def k(x, y, n, B: tl.constexpr):
        i = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(y + i, function(tl.load(x + i, mask=i < n)) * TWO / 2, mask=i < n)
    return k
kernel = make(square)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x); n = x.numel()
        kernel[(triton.cdiv(n, 256),)](x, y, n, B=256)
        return y
