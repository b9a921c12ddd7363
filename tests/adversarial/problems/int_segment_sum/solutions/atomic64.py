import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

@triton.jit
def kern(v, s, y, N, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y + tl.load(s + o, mask=o < N, other=0), tl.load(v + o, mask=o < N, other=0).to(tl.int64), mask=o < N)

class ModelNew(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.s = s
    def forward(self, v, seg):
        y = torch.zeros(self.s, dtype=torch.int64, device=v.device)
        if v.numel():
            kern[(triton.cdiv(v.numel(), 32),)](v.contiguous(), seg.contiguous(), y, v.numel(), BLOCK=32)
        return y
