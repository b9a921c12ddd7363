"""Two passes over chunks of 1024 columns."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_norm(x_ptr, weight_ptr, bias_ptr, y_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + start + offsets, mask=start + offsets < n, other=0.0)
        squares += x * x
    scale = tl.rsqrt(tl.sum(squares, axis=0) / n + eps)
    for start in range(0, n, BLOCK):
        columns = start + offsets
        mask = columns < n
        x = tl.load(x_ptr + row * n + columns, mask=mask)
        weight = tl.load(weight_ptr + columns, mask=mask)
        bias = tl.load(bias_ptr + columns, mask=mask)
        tl.store(y_ptr + row * n + columns, x * scale * weight + bias, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, columns, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(columns))
        self.bias = nn.Parameter(torch.zeros(columns))
        self.eps = eps

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        rms_norm[(x.shape[0],)](x, self.weight, self.bias, y, x.shape[1], self.eps, BLOCK=1024)
        return y
