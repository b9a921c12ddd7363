import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def combine(a1, b1, a2, b2):
    return a1 * a2, a2 * b1 + b2


@triton.jit
def scan_kernel(a_ptr, b_ptr, out_ptr, T, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    h = 0.0
    for start in range(0, T, BLOCK):
        t = start + tl.arange(0, BLOCK)
        mask = t < T
        a = tl.load(a_ptr + row * T + t, mask=mask, other=1.0)
        b = tl.load(b_ptr + row * T + t, mask=mask, other=0.0)
        ca, cb = tl.associative_scan((a, b), 0, combine)
        y = ca * h + cb
        tl.store(out_ptr + row * T + t, y, mask=mask)
        h = tl.sum(tl.where(tl.arange(0, BLOCK) == BLOCK - 1, y, 0.0), axis=0)


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(b)
        scan_kernel[(b.shape[0],)](a, b, out, b.shape[1], BLOCK=32)
        return out
