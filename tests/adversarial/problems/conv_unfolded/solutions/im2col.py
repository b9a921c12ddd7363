"""Columns by PyTorch, the product by a kernel of its own."""

import torch, triton, triton.language as tl
import torch.nn.functional as F

@triton.jit
def mm(w, c, o, OC, K, L, BK: tl.constexpr, BL: tl.constexpr):
    oc, l, b = tl.program_id(0), tl.program_id(1) * BL + tl.arange(0, BL), tl.program_id(2)
    acc = tl.zeros((BL,), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(w + oc * K + k, mask=k < K, other=0.0)
        t = tl.load(c + b * K * L + k[:, None] * L + l[None, :], mask=(k[:, None] < K) & (l[None, :] < L), other=0.0)
        acc += tl.sum(a[:, None] * t, 0)
    tl.store(o + (b * OC + oc) * L + l, acc, mask=l < L)
class ModelNew(torch.nn.Module):
    def __init__(self): super().__init__(); self.conv = torch.nn.Conv2d(8, 16, 3, bias=False)
    def forward(self, x):
        w = self.conv.weight.contiguous(); n, _, h, v = x.shape
        cols = F.unfold(x, 3).contiguous()
        o = torch.empty(n, w.shape[0], (h - 2) * (v - 2), device=x.device)
        mm[(w.shape[0], triton.cdiv(o.shape[2], 64), n)](w, cols, o, w.shape[0], cols.shape[1], o.shape[2], BK=32, BL=64)
        return o.view(n, -1, h - 2, v - 2)
