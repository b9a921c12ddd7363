import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def smooth_kernel(src_ptr, dst_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.load(src_ptr + offs, mask=offs < n, other=0.0)
    l = tl.load(src_ptr + offs - 1, mask=(offs >= 1) & (offs - 1 < n), other=0.0)
    r = tl.load(src_ptr + offs + 1, mask=offs + 1 < n, other=0.0)
    tl.store(dst_ptr + offs, 0.25 * l + 0.5 * c + 0.25 * r, mask=offs < n)


class ModelNew(nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def forward(self, x):
        n = x.numel()
        if self.steps == 0:
            return x.clone()
        a, b = x, torch.empty_like(x)
        spare = torch.empty_like(x)
        for _ in range(self.steps):
            smooth_kernel[(triton.cdiv(n, 256),)](a, b, n, BLOCK=256)
            a, b = b, (spare if a is x else a)
        return a
