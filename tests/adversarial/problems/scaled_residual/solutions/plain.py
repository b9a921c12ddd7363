"""Takes the number as an argument of the kernel."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, alpha, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x_ptr + offsets, mask=mask) + alpha * tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, value, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, alpha: float) -> torch.Tensor:
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 1024), 1, 1)
        add_kernel[grid](x, y, out, alpha, x.numel(), BLOCK=1024)
        return out
