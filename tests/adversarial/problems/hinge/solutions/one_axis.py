import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def part(p, t, acc, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    v = 1.0 - tl.load(p + o, mask=m, other=0.0) * tl.load(t + o, mask=m, other=0.0)
    v = tl.where(m & (v > 0), v, 0.0)
    tl.store(acc + tl.program_id(0), tl.sum(v, 0))

@triton.jit
def last(acc, out, parts, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(acc + o, mask=o < parts, other=0.0), 0) / n)

class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        p, t = predictions.contiguous(), targets.contiguous()
        n = p.numel()
        parts = triton.cdiv(n, 256)
        acc = torch.empty(parts, device=p.device)
        out = torch.empty(1, device=p.device)
        part[(parts,)](p, t, acc, n, BLOCK=256)
        last[(1,)](acc, out, parts, n, BLOCK=triton.next_power_of_2(parts))
        return out
