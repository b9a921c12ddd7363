import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

@triton.jit
def kern(x, w, y, D, BD: tl.constexpr):
    r = tl.program_id(0)
    d = tl.arange(0, BD)
    a = tl.load(x + r * D + d, mask=d < D, other=0.0)
    e = tl.exp(-2.0 * tl.abs(a))
    t = (1.0 - e) / (1.0 + e)
    tl.store(y + r * D + d, tl.where(a < 0, -t, t) * tl.load(w + d, mask=d < D), mask=d < D)

class ModelNew(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
    def forward(self, x):
        y = torch.empty_like(x, memory_format=torch.contiguous_format)
        kern[(x.shape[0],)](x.contiguous(), self.weight, y, x.shape[1], BD=triton.next_power_of_2(x.shape[1]))
        return y
