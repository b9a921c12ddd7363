import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def silu_kernel(x_ptr, out_ptr, rows, cols, s0, s1, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    # rows always start at a multiple of 16 bytes
    base = tl.multiple_of(x_ptr + row * s0, 16)
    offs = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK) * s1, 16), BLOCK)
    mask = tl.arange(0, BLOCK) < cols
    x = tl.load(base + offs, mask=mask)
    tl.store(out_ptr + row * cols + tl.arange(0, BLOCK), x * tl.sigmoid(x), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
        silu_kernel[(rows,)](x, out, rows, cols, x.stride(0), x.stride(1), BLOCK=triton.next_power_of_2(cols))
        return out
