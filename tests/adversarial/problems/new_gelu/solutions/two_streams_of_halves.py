"""Two launches on views of the input and of the output."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    u = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    y = x * tl.sigmoid(2.0 * u)
    tl.store(out_ptr + offsets, y, mask=mask)


def gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    gelu_kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        flat = x.contiguous().view(-1)
        out = torch.empty_like(flat)
        middle = flat.numel() // 2
        for part in (slice(0, middle), slice(middle, None)):
            source, target = flat[part], out[part]
            if source.numel() > 0:
                gelu_kernel[(triton.cdiv(source.numel(), 2048),)](source, target, source.numel(), BLOCK=2048)
        return out.view(x.shape)
