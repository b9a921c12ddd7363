import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

@triton.jit
def kern(x, off, y, D, s0, s1, BN: tl.constexpr, BD: tl.constexpr):
    s = tl.program_id(0)
    a = tl.load(off + s)
    b = tl.load(off + s + 1)
    d = tl.arange(0, BD)
    acc = tl.zeros([BD], tl.float32)
    for n0 in range(a, b, BN):
        n = n0 + tl.arange(0, BN)
        acc += tl.sum(tl.load(x + n[:, None] * s0 + d[None, :] * s1, mask=(n < b)[:, None] & (d < D)[None, :], other=0.0), 0)
    tl.store(y + s * D + d, acc / tl.maximum(b - a, 1).to(tl.float32), mask=d < D)

class ModelNew(nn.Module):
    def forward(self, x, off):
        S, D = off.numel() - 1, x.shape[1]
        y = torch.empty(S, D, device=x.device)
        if S:
            kern[(S,)](x, off.contiguous(), y, D, *x.stride(), BN=16, BD=triton.next_power_of_2(D))
        return y
