import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=-float("inf"))
    tl.atomic_max(out_ptr, tl.max(x, axis=0).to(tl.int32, bitcast=True))
    a = tl.max(tl.where(offs < n, tl.abs(x), 0.0), axis=0)
    # bits of non-negative floats are ordered like integers
    tl.atomic_max(out_ptr + 1, a.to(tl.int32, bitcast=True))


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        bits = torch.zeros(2, dtype=torch.int32, device=x.device)
        kernel[(triton.cdiv(x.numel(), 512),)](x, bits, x.numel(), BLOCK=512)
        return bits.view(torch.float32)
