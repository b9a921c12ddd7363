import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def gn(x, w, b, out, G, CG, HW, EPS, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    g = p % G
    n = CG * HW
    o = tl.arange(0, BLOCK)
    m = o < n
    v = tl.load(x + p * n + o, mask=m, other=0.0)
    mean = tl.sum(v, 0) / n
    d = tl.where(m, v - mean, 0.0)
    var = tl.sum(d * d, 0) / n
    c = o // HW
    y = d * (1.0 / tl.sqrt(var + EPS)) * tl.load(w + c, mask=m, other=0.0) + tl.load(b + c, mask=m, other=0.0)
    tl.store(out + p * n + o, y, mask=m)

class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.groups = groups
        self.gn = nn.GroupNorm(groups, channels)

    def forward(self, x):
        x = x.contiguous()
        N, C = x.shape[:2]
        HW = x[0, 0].numel()
        out = torch.empty_like(x)
        CG = C // self.groups
        gn[(N * self.groups,)](x, self.gn.weight, self.gn.bias, out, self.groups, CG, HW, 1e-5, BLOCK=triton.next_power_of_2(CG * HW))
        return out
