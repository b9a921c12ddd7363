"""The gradient of the scales by one program for each block of columns, which walks the rows."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    w = tl.load(w_ptr + offsets, mask=mask)
    tl.store(y_ptr + row * n + offsets, tl.load(x_ptr + row * n + offsets, mask=mask) * w, mask=mask)


@triton.jit
def weight_gradient(x_ptr, dy_ptr, dw_ptr, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        places = row[:, None] * n + columns[None, :]
        mask = (row[:, None] < rows) & (columns[None, :] < n)
        x = tl.load(x_ptr + places, mask=mask, other=0.0)
        total += x * tl.load(dy_ptr + places, mask=mask, other=0.0)
    tl.store(dw_ptr + columns, tl.sum(total, axis=0), mask=columns < n)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        x = x.contiguous()
        y = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        scale[(x.shape[0],)](x, weight, y, x.shape[1], BLOCK=block)
        ctx.save_for_backward(x, weight)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        dy = dy.contiguous()
        rows, n = x.shape
        dx, dw = torch.empty_like(x), torch.empty_like(weight)
        scale[(rows,)](dy, weight, dx, n, BLOCK=triton.next_power_of_2(n))
        weight_gradient[(triton.cdiv(n, 32),)](x, dy, dw, rows, n, ROWS=128, BLOCK=32)
        return dx, dw


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns))

    def forward(self, x):
        return Scale.apply(x, self.weight)
