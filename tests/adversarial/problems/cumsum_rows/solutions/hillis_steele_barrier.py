import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scan_kernel(x_ptr, buf_ptr, cols, LOG: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < cols
    base = buf_ptr + row * cols
    tl.store(base + offs, tl.load(x_ptr + row * cols + offs, mask=mask), mask=mask)
    tl.debug_barrier()
    for i in tl.static_range(LOG):
        v = tl.load(base + offs, mask=mask, other=0.0)
        p = tl.load(base + offs - (1 << i), mask=mask & (offs >= (1 << i)), other=0.0)
        tl.debug_barrier()
        tl.store(base + offs, v + p, mask=mask)
        tl.debug_barrier()


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        BLOCK = triton.next_power_of_2(cols)
        scan_kernel[(rows,)](x, out, cols, LOG=BLOCK.bit_length() - 1, BLOCK=BLOCK, num_warps=8)
        return out
