import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _sum_sq(ptr, cols, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        v = tl.load(ptr + offs, mask=offs < cols, other=0.0).to(tl.float32)
        acc += v * v
    return tl.sum(acc, axis=0)


@triton.jit
def rms_kernel(x_ptr, w_ptr, out_ptr, rows, cols, eps, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        base = x_ptr + row * cols
        rstd = 1.0 / tl.sqrt(_sum_sq(base, cols, BLOCK) / cols + eps)
        for start in range(0, cols, BLOCK):
            o = start + tl.arange(0, BLOCK)
            m = o < cols
            v = tl.load(base + o, mask=m, other=0.0)
            w = tl.load(w_ptr + o, mask=m, other=0.0)
            tl.store(out_ptr + row * cols + o, v * rstd * w, mask=m)


class ModelNew(nn.Module):
    def __init__(self, cols, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.eps = eps

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        rms_kernel[(min(rows, 7),)](x, self.weight, out, rows, cols, self.eps, BLOCK=1024)
        return out
