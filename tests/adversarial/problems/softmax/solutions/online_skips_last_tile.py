"""The loop over column tiles leaves out the incomplete last one."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def tiled_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for tile in range(0, n_cols // BLOCK):
        total += tl.sum(tl.exp(tl.load(x_ptr + row * n_cols + tile * BLOCK + tl.arange(0, BLOCK))), axis=0)
    for tile in range(0, tl.cdiv(n_cols, BLOCK)):
        offsets = tile * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + offsets, mask=offsets < n_cols)
        tl.store(out_ptr + row * n_cols + offsets, tl.exp(x) / total, mask=offsets < n_cols)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        tiled_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=64)
        return out
