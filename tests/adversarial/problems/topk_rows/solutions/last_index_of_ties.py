import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def topk_kernel(x_ptr, val_ptr, idx_ptr, cols, k, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + offs, mask=offs < cols, other=-float("inf"))
    
    left = offs < cols
    for j in range(k):
        m = tl.max(tl.where(left, x, -float("inf")), axis=0)
        hit = left & (x == m)
        i = tl.max(tl.where(hit, offs, -1), axis=0)
        tl.store(val_ptr + row * k + j, m)
        tl.store(idx_ptr + row * k + j, i.to(tl.int64))
        left = left & (offs != i)


class ModelNew(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        val = torch.empty((rows, self.k), dtype=x.dtype, device=x.device)
        idx = torch.empty((rows, self.k), dtype=torch.int64, device=x.device)
        topk_kernel[(rows,)](x, val, idx, cols, self.k, BLOCK=triton.next_power_of_2(cols))
        return val, idx
