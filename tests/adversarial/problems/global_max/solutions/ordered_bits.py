import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def unpack(bits_ptr, out_ptr):
    k = tl.load(bits_ptr)
    k = k ^ ((k >> 31) & 0x7FFFFFFF)
    tl.store(out_ptr, k.to(tl.float32, bitcast=True))
    tl.store(out_ptr + 1, tl.load(bits_ptr + 1).to(tl.float32, bitcast=True))


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=-float("inf"))
    b = tl.max(x, axis=0).to(tl.int32, bitcast=True)
    tl.atomic_max(out_ptr, b ^ ((b >> 31) & 0x7FFFFFFF))
    a = tl.max(tl.where(offs < n, tl.abs(x), 0.0), axis=0)
    # bits of non-negative floats are ordered like integers
    tl.atomic_max(out_ptr + 1, a.to(tl.int32, bitcast=True))


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        bits = torch.tensor([-(2**31), 0], dtype=torch.int32, device=x.device)
        kernel[(triton.cdiv(x.numel(), 512),)](x, bits, x.numel(), BLOCK=512)
        out = torch.empty(2, dtype=x.dtype, device=x.device)
        unpack[(1,)](bits, out)
        return out
