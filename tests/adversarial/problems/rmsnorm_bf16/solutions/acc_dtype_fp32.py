import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_kernel(x_ptr, w_ptr, out_ptr, cols, eps, ACC: tl.constexpr, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK >= 1, "block must be positive")
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=ACC)
    for start in range(0, cols, BLOCK):
        o = start + tl.arange(0, BLOCK)
        v = tl.load(x_ptr + row * cols + o, mask=o < cols, other=0.0).to(ACC)
        acc += v * v
    rstd = tl.rsqrt(tl.sum(acc, axis=0).to(tl.float32) / cols + eps)
    for start in range(0, cols, BLOCK):
        o = start + tl.arange(0, BLOCK)
        m = o < cols
        v = tl.load(x_ptr + row * cols + o, mask=m, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + o, mask=m, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * cols + o, (v * rstd * w).to(out_ptr.dtype.element_ty), mask=m)


class ModelNew(nn.Module):
    def __init__(self, cols, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols, dtype=torch.bfloat16))
        self.eps = eps

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        rms_kernel[(rows,)](x, self.weight, out, cols, self.eps, ACC=tl.float32, BLOCK=128)
        return out
