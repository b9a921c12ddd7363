import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, b_ptr, tmp_ptr, n, cols, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    v = tl.load(x_ptr + offs, mask=mask, other=0.0) + tl.load(b_ptr + offs % cols, mask=mask, other=0.0)
    tl.store(tmp_ptr + offs, v, mask=mask)


@triton.jit
def gelu_kernel(tmp_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(tmp_ptr + offs, mask=mask, other=0.0)
    tl.store(out_ptr + offs, 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)), mask=mask)


_SCRATCH = {}


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        x = x.contiguous()
        n = x.numel()
        tmp = _SCRATCH.get((x.device, x.dtype))
        if tmp is None or tmp.numel() < n:
            tmp = _SCRATCH[(x.device, x.dtype)] = torch.empty(n, dtype=x.dtype, device=x.device)
        out = torch.empty_like(x)
        grid = (triton.cdiv(n, 1024),)
        add_kernel[grid](x, self.bias, tmp, n, x.shape[-1], BLOCK=1024)
        gelu_kernel[grid](tmp, out, n, BLOCK=1024)
        return out
