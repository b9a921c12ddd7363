import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def part(p, t, acc, n, inv, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    v = tl.where(m, tl.maximum(1.0 - tl.load(p + o, mask=m, other=0.0) * tl.load(t + o, mask=m, other=0.0), 0.0), 0.0)
    tl.atomic_add(acc, tl.sum(v.to(tl.float64), 0) * inv)

class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        p, t = predictions.contiguous(), targets.contiguous()
        n = p.numel()
        acc = torch.zeros(1, dtype=torch.float64, device=p.device)
        part[(triton.cdiv(n, 300 if False else 128),)](p, t, acc, n, 1.0 / n, BLOCK=128)
        return acc.float().squeeze()
