"""One program per row."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    a = tl.load(a_ptr + row * n + offsets, mask=mask, other=0.0)
    b = tl.load(b_ptr + row * n + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + row, tl.sum(a * b, axis=0) / n)


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty(a.shape[0], device=a.device, dtype=a.dtype)
        mean_kernel[(a.shape[0],)](a, b, out, a.shape[1], BLOCK=triton.next_power_of_2(a.shape[1]))
        return out
