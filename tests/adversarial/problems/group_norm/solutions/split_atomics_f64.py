import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def stats(x, acc, n, chunks, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    k = tl.program_id(1)
    o = k * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + p * n + o, mask=o < n, other=0.0).to(tl.float64)
    tl.atomic_add(acc + 2 * p, tl.sum(v, 0))
    tl.atomic_add(acc + 2 * p + 1, tl.sum(v * v, 0))

@triton.jit
def apply(x, acc, w, b, out, G, CG, HW, n, EPS, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    k = tl.program_id(1)
    o = k * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    mean = tl.load(acc + 2 * p) / n
    var = tl.maximum(tl.load(acc + 2 * p + 1) / n - mean * mean, 0.0)
    c = (p % G) * CG + o // HW
    v = tl.load(x + p * n + o, mask=m, other=0.0).to(tl.float64)
    y = (v - mean) / tl.sqrt(var + EPS) * tl.load(w + c, mask=m, other=0.0) + tl.load(b + c, mask=m, other=0.0)
    tl.store(out + p * n + o, y.to(tl.float32), mask=m)

class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.groups = groups
        self.gn = nn.GroupNorm(groups, channels)

    def forward(self, x):
        x = x.contiguous()
        N, C, Hh, W = x.shape
        CG = C // self.groups
        n = CG * Hh * W
        acc = torch.zeros(N * self.groups, 2, dtype=torch.float64, device=x.device)
        out = torch.empty_like(x)
        chunks = triton.cdiv(n, 64)
        grid = (N * self.groups, chunks)
        stats[grid](x, acc, n, chunks, BLOCK=64)
        apply[grid](x, acc, self.gn.weight, self.gn.bias, out, self.groups, CG, Hh * W, n, 1e-5, BLOCK=64)
        return out
