"""One pixel block at a time, channels summed from the last to the first."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_kernel(x_ptr, out_ptr, features, pixels, eps, FEATURES: tl.constexpr, PIXELS: tl.constexpr):
    batch = tl.program_id(0)
    p = tl.program_id(1) * PIXELS + tl.arange(0, PIXELS)
    start = batch * features * pixels + p
    total = tl.zeros((PIXELS,), tl.float32)
    for i in range(0, features):
        x = tl.load(x_ptr + start + (features - 1 - i) * pixels, mask=p < pixels, other=0.0)
        total += x * x
    rms = tl.sqrt(total / features + eps)
    for i in range(0, features):
        x = tl.load(x_ptr + start + i * pixels, mask=p < pixels, other=0.0)
        tl.store(out_ptr + start + i * pixels, x / rms, mask=p < pixels)


class ModelNew(nn.Module):
    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.num_features = num_features
        self.eps = eps

    def forward(self, x):
        x = x.contiguous()
        batch, features = x.shape[:2]
        pixels = x.numel() // (batch * features)
        out = torch.empty_like(x)
        rms_kernel[(batch, triton.cdiv(pixels, 64))](
            x, out, features, pixels, self.eps, FEATURES=triton.next_power_of_2(features), PIXELS=64
        )
        return out
