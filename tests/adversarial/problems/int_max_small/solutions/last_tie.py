import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

@triton.jit
def pick(v1, i1, v2, i2):
    t = (v1 > v2) | ((v1 == v2) & (i1 > i2))
    return tl.where(t, v1, v2), tl.where(t, i1, i2)

@triton.jit
def kern(x, v, i, N, BN: tl.constexpr):
    r = tl.program_id(0)
    n = tl.arange(0, BN)
    a = tl.load(x + r * N + n, mask=n < N, other=-1)
    m, k = tl.reduce((a, n), 0, pick)
    tl.store(v + r, m)
    tl.store(i + r, k.to(tl.int64))

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        R, N = x.shape
        v, i = x.new_empty(R), x.new_empty(R)
        kern[(R,)](x, v, i, N, BN=triton.next_power_of_2(N))
        return v, i
