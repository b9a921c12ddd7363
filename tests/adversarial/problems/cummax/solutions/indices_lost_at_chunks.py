import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def later(av, ai, bv, bi):
    take = bv >= av
    return tl.where(take, bv, av), tl.where(take, bi, ai)

@triton.jit
def cm(x, values, where, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    best = -float("inf")
    for k in range(0, n, BLOCK):
        o = k + tl.arange(0, BLOCK)
        v = tl.load(x + r * n + o, mask=o < n, other=-float("inf"))
        y, i = tl.associative_scan((v, o), 0, later)
        y = tl.maximum(y, best)
        best = tl.max(y, 0)
        tl.store(values + r * n + o, y, mask=o < n)
        tl.store(where + r * n + o, i.to(tl.int64), mask=o < n)

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        R, n = x.shape
        values = torch.empty_like(x)
        where = torch.empty(R, n, dtype=torch.int64, device=x.device)
        cm[(R,)](x, values, where, n, BLOCK=64)
        return values, where
