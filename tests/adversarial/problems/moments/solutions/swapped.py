"""The results in the other order."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def moments_kernel(x_ptr, mean_ptr, var_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + row * n + offsets, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / n
    d = tl.where(mask, x - mean, 0.0)
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, tl.sum(d * d, axis=0) / n)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        mean = torch.empty(x.shape[0], device=x.device)
        var = torch.empty(x.shape[0], device=x.device)
        moments_kernel[(x.shape[0],)](x, mean, var, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return var, mean
