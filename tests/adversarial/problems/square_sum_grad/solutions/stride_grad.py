import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

@triton.jit
def fwd(x, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + o, mask=o < n)
    e = tl.exp(-2.0 * tl.abs(a))
    t = (1.0 - e) / (1.0 + e)
    tl.store(y + o, tl.where(a < 0, -t, t), mask=o < n)

@triton.jit
def bwd(g, y, d, D, g0, g1, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(y + o, mask=o < n)
    tl.store(d + o, tl.load(g + o // D * g0 + o % D * g1, mask=o < n) * (1.0 - a * a), mask=o < n)

class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        fwd[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
        ctx.save_for_backward(y)
        return y
    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensors
        d = torch.empty_like(y)
        bwd[(triton.cdiv(y.numel(), 128),)](g, y, d, y.shape[1], *g.stride(), y.numel(), BLOCK=128)
        return d

class ModelNew(nn.Module):
    def forward(self, x):
        return Fn.apply(x)
