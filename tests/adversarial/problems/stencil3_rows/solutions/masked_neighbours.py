import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def stencil(x_ptr, out_ptr, cols, stride_r, stride_c, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for d in tl.static_range(-1, 2):
        j = offs + d
        acc += tl.load(x_ptr + row * stride_r + j * stride_c, mask=(j >= 0) & (j < cols), other=0.0)
    tl.store(out_ptr + row * cols + offs, acc / 3.0, mask=offs < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
        stencil[(rows, triton.cdiv(cols, 256))](x, out, cols, x.stride(0), x.stride(1), BLOCK=256)
        return out
