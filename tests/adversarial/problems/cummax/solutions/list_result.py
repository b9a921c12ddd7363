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
    o = tl.arange(0, BLOCK)
    v = tl.load(x + r * n + o, mask=o < n, other=-float("inf"))
    y, i = tl.associative_scan((v, o), 0, later)
    tl.store(values + r * n + o, y, mask=o < n)
    tl.store(where + r * n + o, i.to(tl.int64), mask=o < n)

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        R, n = x.shape
        values = torch.empty_like(x)
        where = torch.empty(R, n, dtype=torch.int64, device=x.device)
        cm[(R,)](x, values, where, n, BLOCK=triton.next_power_of_2(n))
        return [values, where]
