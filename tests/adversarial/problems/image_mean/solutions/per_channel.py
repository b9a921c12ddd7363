"""One program for each channel of each image."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def image_mean(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    image = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x_ptr + image * n + start + offsets, mask=start + offsets < n, other=0.0)
    tl.store(y_ptr + image, tl.sum(total, axis=0) / n)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        batch, channels, height, width = x.shape
        y = torch.empty(batch, channels, 1, 1, device=x.device, dtype=x.dtype)
        image_mean[(batch * channels,)](x, y, height * width, BLOCK=1024)
        return y.view(batch, channels)
