import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def ln_kernel(x_ptr, out_ptr, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < cols
    x = tl.load(x_ptr + row * cols + offs, mask=mask, other=0.0)
    f = x.to(tl.float32)
    mean = tl.sum(f, axis=0) / cols
    d = tl.where(mask, f - mean, 0.0)
    var = tl.sum(d * d, axis=0) / cols
    y = (x.to(tl.float32) - mean) * tl.rsqrt(var + eps)
    tl.store(out_ptr + row * cols + offs, y.to(tl.float16), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.cols = cols

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        ln_kernel[(rows,)](x, out, cols, 1e-5, BLOCK=triton.next_power_of_2(cols))
        return out
