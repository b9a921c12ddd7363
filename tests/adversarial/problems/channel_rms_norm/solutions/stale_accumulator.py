"""A program does two tiles of pixels and does not clear the sum between them."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_kernel(x_ptr, out_ptr, features, pixels, eps, TILES: tl.constexpr, PIXELS: tl.constexpr):
    batch = tl.program_id(0)
    total = tl.zeros((PIXELS,), tl.float32)
    for tile in range(0, TILES):
        p = (tl.program_id(1) * TILES + tile) * PIXELS + tl.arange(0, PIXELS)
        start = batch * features * pixels + p
        for i in range(0, features):
            x = tl.load(x_ptr + start + i * pixels, mask=p < pixels, other=0.0)
            total += x * x
        rms = tl.sqrt(total / features + eps)
        for i in range(0, features):
            x = tl.load(x_ptr + start + i * pixels, mask=p < pixels, other=0.0)
            tl.store(out_ptr + start + i * pixels, x / rms, mask=p < pixels)


class ModelNew(nn.Module):
    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        batch, features, height, width = x.shape
        out = torch.empty_like(x)
        rms_kernel[(batch, triton.cdiv(height * width, 128))](
            x, out, features, height * width, self.eps, TILES=2, PIXELS=64
        )
        return out
