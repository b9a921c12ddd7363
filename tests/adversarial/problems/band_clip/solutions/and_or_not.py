import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, f_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for i in range(0, tl.cdiv(cols, BLOCK)):
        offs = i * BLOCK + tl.arange(0, BLOCK)
        mask = offs < cols
        x = tl.load(x_ptr + row * cols + offs, mask=mask, other=0.0)
        f = tl.load(f_ptr + row * cols + offs, mask=mask, other=0)
        keep = (x > -0.5) and (x < 0.75)
        y = tl.where(not (keep or (f != 0)), -2.0 * x, x)
        tl.store(out_ptr + row * cols + offs, y, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, flag):
        x, flag = x.contiguous(), flag.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        kernel[(rows,)](x, flag, out, rows, cols, BLOCK=128)
        return out
