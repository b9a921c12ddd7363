"""The kernel uses a name that Triton does not have."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bad_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n_cols)
    tl.store(out_ptr + offsets, tl.row_softmax(x), mask=offsets < n_cols)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        bad_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
        return out
