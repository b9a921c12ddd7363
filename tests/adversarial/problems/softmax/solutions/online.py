"""Online softmax: running maximum and rescaled sum, then a second pass."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def online_softmax_kernel(x_ptr, out_ptr, n_cols, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * stride
    out_ptr += row * stride
    m = tl.full((), -float("inf"), tl.float32)
    s = tl.full((), 0.0, tl.float32)
    for start in range(0, n_cols, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n_cols, other=-float("inf"))
        new = tl.maximum(m, tl.max(x, axis=0))
        s = s * tl.exp(m - new) + tl.sum(tl.exp(x - new), axis=0)
        m = new
    for start in range(0, n_cols, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n_cols, other=-float("inf"))
        tl.store(out_ptr + offsets, tl.exp(x - m) / s, mask=offsets < n_cols)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        online_softmax_kernel[(x.shape[0],)](x, out, x.shape[1], x.stride(0), BLOCK=128)
        return out
