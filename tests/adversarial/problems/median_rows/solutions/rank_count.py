import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def median_kernel(x_ptr, out_ptr, idx_ptr, cols, kth, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < cols
    x = tl.load(x_ptr + row * cols + offs, mask=mask, other=float("inf"))
    rank = tl.zeros((BLOCK,), dtype=tl.int32)
    for j in range(cols):
        v = tl.load(x_ptr + row * cols + j)
        rank += ((v < x) | ((v == x) & (j > offs))).to(tl.int32)
    hit = mask & (rank == kth)
    tl.store(out_ptr + row, tl.sum(tl.where(hit, x, 0.0), axis=0))
    tl.store(idx_ptr + row, tl.sum(tl.where(hit, offs, 0), axis=0).to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty(rows, dtype=x.dtype, device=x.device)
        idx = torch.empty(rows, dtype=torch.int64, device=x.device)
        median_kernel[(rows,)](x, out, idx, cols, (cols - 1) // 2, BLOCK=triton.next_power_of_2(cols))
        return out, idx
