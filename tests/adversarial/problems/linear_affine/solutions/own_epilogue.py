"""The product by PyTorch, scale and bias by a kernel of its own."""

import torch, triton, triton.language as tl
import torch.nn.functional as F

@triton.jit
def k(x, s, b, y, n, C, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B); m = i < n
    v = tl.load(x + i, mask=m) * tl.load(s + i % C, mask=m) + tl.load(b + i % C, mask=m)
    tl.store(y + i, v, mask=m)
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.w = torch.nn.Parameter(torch.randn(128, 64) / 11)
        self.scale = torch.nn.Parameter(torch.ones(64)); self.bias = torch.nn.Parameter(torch.zeros(64))
    def forward(self, x):
        h = torch.matmul(x, self.w); y = torch.empty_like(h)
        k[(triton.cdiv(h.numel(), 256),)](h, self.scale, self.bias, y, h.numel(), h.shape[-1], B=256)
        return y
