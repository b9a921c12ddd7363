"""One bias for all channels."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def epilogue_kernel(y_ptr, bias_ptr, out_ptr, n, channels, pixels, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    y = tl.load(y_ptr + offsets, mask=mask)
    bias = tl.load(bias_ptr + 0 * offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.maximum(y, 0.0) + bias, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        y = self.conv(x).contiguous()
        out = torch.empty_like(y)
        n, channels, pixels = y.numel(), y.shape[1], y.shape[2] * y.shape[3]
        epilogue_kernel[(triton.cdiv(n, 1024),)](y, self.bias, out, n, channels, pixels, BLOCK=1024)
        return out
