import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * BLOCK + offs)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * BLOCK + offs, e / tl.sum(e, axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        if cols & (cols - 1):
            raise NotImplementedError("the number of columns must be a power of two")
        x = x.contiguous()
        out = torch.empty_like(x)
        softmax_kernel[(rows,)](x, out, BLOCK=cols)
        return out
