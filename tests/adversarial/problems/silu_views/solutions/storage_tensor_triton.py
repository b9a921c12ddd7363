import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def silu_kernel(x_ptr, out_ptr, rows, cols, s0, s1, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < cols
    x = tl.load(x_ptr + row * s0 + offs * s1, mask=mask)
    tl.store(out_ptr + row * cols + offs, x * tl.sigmoid(x), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        flat = torch.empty(0, dtype=x.dtype, device=x.device).set_(x.untyped_storage())
        rows, cols = x.shape
        out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
        silu_kernel[(rows, triton.cdiv(cols, 256))](flat, out, rows, cols, x.stride(0), x.stride(1), BLOCK=256)
        return out
