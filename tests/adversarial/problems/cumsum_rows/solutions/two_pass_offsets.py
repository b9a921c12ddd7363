import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def block_sums(x_ptr, sums_ptr, n_cols, n_blocks, BLOCK: tl.constexpr):
    row, blk = tl.program_id(0), tl.program_id(1)
    offs = blk * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + offs, mask=offs < n_cols, other=0.0)
    tl.store(sums_ptr + row * n_blocks + blk, tl.sum(x, axis=0))


@triton.jit
def scan_with_offsets(x_ptr, sums_ptr, out_ptr, n_cols, n_blocks, BLOCK: tl.constexpr, NB: tl.constexpr):
    row, blk = tl.program_id(0), tl.program_id(1)
    b = tl.arange(0, NB)
    prev = tl.load(sums_ptr + row * n_blocks + b, mask=b < blk, other=0.0)
    carry = tl.sum(prev, axis=0)
    offs = blk * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_cols
    x = tl.load(x_ptr + row * n_cols + offs, mask=mask, other=0.0)
    tl.store(out_ptr + row * n_cols + offs, tl.cumsum(x, 0) + carry, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        BLOCK = 128
        nb = triton.cdiv(cols, BLOCK)
        sums = torch.empty((rows, nb), device=x.device, dtype=torch.float32)
        out = torch.empty_like(x)
        block_sums[(rows, nb)](x, sums, cols, nb, BLOCK=BLOCK)
        scan_with_offsets[(rows, nb)](x, sums, out, cols, nb, BLOCK=BLOCK, NB=triton.next_power_of_2(nb))
        return out
