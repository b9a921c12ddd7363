"""torch.sort, then a kernel that picks the last column."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def last_kernel(x_ptr, out_ptr, n):
    row = tl.program_id(0)
    tl.store(out_ptr + row, tl.load(x_ptr + row * n + n - 1))


class ModelNew(nn.Module):
    def forward(self, x):
        x = torch.sort(x, dim=1).values
        out = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        last_kernel[(x.shape[0],)](x, out, x.shape[1])
        return out
