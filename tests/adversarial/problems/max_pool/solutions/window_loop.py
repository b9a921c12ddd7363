"""A loop over the window with masks at the border."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pool_kernel(x_ptr, out_ptr, H, W, OH, OW, stride, padding, WINDOW: tl.constexpr, BLOCK: tl.constexpr):
    image = tl.program_id(0)
    p = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    oh = p // OW
    ow = p % OW
    best = tl.full((BLOCK,), -float("inf"), tl.float32)
    for i in range(WINDOW):
        for j in range(WINDOW):
            h = oh * stride - padding + i
            w = ow * stride - padding + j
            inside = (h >= 0) & (h < H) & (w >= 0) & (w < W) & (p < OH * OW)
            x = tl.load(x_ptr + image * H * W + h * W + w, mask=inside, other=-float("inf"))
            best = tl.maximum(best, x)
    tl.store(out_ptr + image * OH * OW + p, best, mask=p < OH * OW)


class ModelNew(nn.Module):
    def __init__(self, kernel_size, stride, padding):
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, x):
        x = x.contiguous()
        batch, channels, H, W = x.shape
        OH = (H + 2 * self.padding - self.kernel_size) // self.stride + 1
        OW = (W + 2 * self.padding - self.kernel_size) // self.stride + 1
        out = torch.empty((batch, channels, OH, OW), device=x.device, dtype=x.dtype)
        pool_kernel[(batch * channels, triton.cdiv(OH * OW, 128))](
            x, out, H, W, OH, OW, self.stride, self.padding, WINDOW=self.kernel_size, BLOCK=128
        )
        return out
