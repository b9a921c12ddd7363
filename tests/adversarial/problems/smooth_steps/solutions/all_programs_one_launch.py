import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def smooth_all(a_ptr, b_ptr, n, steps, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    for s in range(steps):
        src = tl.where(s % 2 == 0, a_ptr, b_ptr)
        dst = tl.where(s % 2 == 0, b_ptr, a_ptr)
        c = tl.load(src + offs, mask=mask, other=0.0)
        l = tl.load(src + offs - 1, mask=(offs >= 1) & mask, other=0.0)
        r = tl.load(src + offs + 1, mask=offs + 1 < n, other=0.0)
        tl.store(dst + offs, 0.25 * l + 0.5 * c + 0.25 * r, mask=mask)
        tl.debug_barrier()


class ModelNew(nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def forward(self, x):
        a = x.clone()
        b = torch.empty_like(x)
        n = x.numel()
        smooth_all[(triton.cdiv(n, 1024),)](a, b, n, self.steps, BLOCK=1024)
        return b if self.steps % 2 else a
