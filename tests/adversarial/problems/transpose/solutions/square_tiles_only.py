"""Takes the number of rows for both strides."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(x_ptr, out_ptr, R, C, BLOCK: tl.constexpr):
    start = tl.program_id(2) * R * C
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (r[:, None] < R) & (c[None, :] < C)
    tile = tl.load(x_ptr + start + r[:, None] * R + c[None, :], mask=mask)
    tl.store(out_ptr + start + c[:, None] * R + r[None, :], tl.trans(tile), mask=tl.trans(mask))


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        B, R, C = x.shape
        out = torch.empty((B, C, R), device=x.device, dtype=x.dtype)
        transpose_kernel[(triton.cdiv(R, 32), triton.cdiv(C, 32), B)](x, out, R, C, BLOCK=32)
        return out
