import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def silu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x / (1.0 + tl.exp(-x)), mask=offs < n)


class ModelNew(nn.Module):
    def forward(self, x):
        # a dense tensor (also a transposed one) keeps its strides in empty_like,
        # so element k of memory is the same element in both
        out = torch.empty_like(x)
        if out.stride() != x.stride():
            x = x.contiguous()
            out = torch.empty_like(x)
        n = x.numel()
        silu_kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
        return out
