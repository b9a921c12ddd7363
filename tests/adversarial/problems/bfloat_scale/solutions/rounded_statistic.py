"""The sum of squares is computed in float32 and rounded to bfloat16 once."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + row * n + offsets, mask=mask, other=0.0).to(tl.float32)
    y = x * tl.rsqrt((tl.sum(x * x, axis=0) / n + 1e-6).to(tl.bfloat16).to(tl.float32)).to(tl.bfloat16).to(
        tl.float32
    )
    tl.store(out_ptr + row * n + offsets, y.to(tl.bfloat16), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        scale_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
