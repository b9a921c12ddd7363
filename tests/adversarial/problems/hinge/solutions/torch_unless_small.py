"""Wrong: torch for more than 300 elements, that is for the declared sizes; a kernel for less."""
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def hinge(p, t, out, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    m = o < n
    v = tl.maximum(1.0 - tl.load(p + o, mask=m, other=0.0) * tl.load(t + o, mask=m, other=0.0), 0.0)
    tl.store(out, tl.sum(tl.where(m, v, 0.0), 0) / n)

class ModelNew(nn.Module):
    def forward(self, p, t):
        n = p.numel()
        if n > 300:
            return torch.mean(torch.clamp(1 - p * t, min=0))
        out = torch.empty((), device=p.device)
        hinge[(1,)](p, t, out, n, BLOCK=512)
        return out
