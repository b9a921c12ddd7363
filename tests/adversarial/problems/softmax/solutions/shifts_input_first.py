"""Subtracts the maximum from the input in place, and puts the result in a new tensor."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def shift_kernel(x_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n_cols
    x = tl.load(x_ptr + row * n_cols + offsets, mask=mask, other=-float("inf"))
    tl.store(x_ptr + row * n_cols + offsets, x - tl.max(x, axis=0), mask=mask)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, x_stride, out_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n_cols
    x = tl.load(x_ptr + row * x_stride + offsets, mask=mask, other=-float("inf"))
    x = x - tl.max(x, axis=0)
    e = tl.exp(x)
    y = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * out_stride + offsets, y, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        block = triton.next_power_of_2(cols)
        out = torch.empty_like(x)
        shift_kernel[(rows,)](x, cols, BLOCK=block)
        softmax_kernel[(rows,)](x, out, cols, x.stride(0), out.stride(0), BLOCK=block)
        return out
