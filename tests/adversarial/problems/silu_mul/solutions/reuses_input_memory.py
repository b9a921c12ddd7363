import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def silu_mul_inplace(g_ptr, u_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    g = tl.load(g_ptr + offs, mask=mask, other=0.0)
    u = tl.load(u_ptr + offs, mask=mask, other=0.0)
    tl.store(g_ptr + offs, g * tl.sigmoid(g) * u, mask=mask)


class ModelNew(nn.Module):
    def forward(self, gate, up):
        gate, up = gate.contiguous(), up.contiguous()
        n = gate.numel()
        silu_mul_inplace[(triton.cdiv(n, 1024),)](gate, up, n, BLOCK=1024)
        return gate
