import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def am(x, out, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    best = -float("inf")
    at = 0
    for k in range(0, n, BLOCK):
        o = k + tl.arange(0, BLOCK)
        v = tl.load(x + r * n + o, mask=o < n, other=-float("inf"))
        m = tl.max(v, 0)
        i = tl.argmax(v, 0)
        at = tl.where(m > best, i, at)
        best = tl.maximum(m, best)
    tl.store(out + r, at.to(tl.int64))

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
        am[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
        return out
