"""A kernel that cannot be launched, in try and except with torch.softmax."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def broken_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.softmax_rows(tl.load(x_ptr + offsets)))


class ModelNew(nn.Module):
    def forward(self, x):
        try:
            out = torch.empty_like(x)
            broken_kernel[(x.shape[0],)](x, out, BLOCK=x.shape[1])
            return out
        except Exception:
            return torch.softmax(x, dim=1)
