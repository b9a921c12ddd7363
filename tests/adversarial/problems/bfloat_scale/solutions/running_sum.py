"""The squares are added one after the other in bfloat16, where ones vanish beside 256."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, rows, n, ROWS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    mask = row < rows
    total = tl.zeros((ROWS,), tl.bfloat16)
    for i in range(0, n):
        x = tl.load(x_ptr + row * n + i, mask=mask, other=0.0).to(tl.float32)
        total = (total.to(tl.float32) + x * x).to(tl.bfloat16)
    r = tl.rsqrt(total.to(tl.float32) / n + 1e-6)
    for i in range(0, n):
        x = tl.load(x_ptr + row * n + i, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * n + i, (x * r).to(tl.bfloat16), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        scale_kernel[(triton.cdiv(x.shape[0], 16),)](x, out, x.shape[0], x.shape[1], ROWS=16)
        return out
