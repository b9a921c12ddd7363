import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def stencil(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < cols
    base = x_ptr + row * cols + offs
    c = tl.load(base, mask=mask, other=0.0)
    l = tl.load(base - 1, mask=mask, other=0.0)
    r = tl.load(base + 1, mask=mask, other=0.0)
    l = tl.where(offs > 0, l, 0.0)
    r = tl.where(offs < cols - 1, r, 0.0)
    tl.store(out_ptr + row * cols + offs, (l + c + r) / 3.0, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        rows, cols = x.shape
        stencil[(rows, triton.cdiv(cols, 256))](x, out, cols, BLOCK=256)
        return out
