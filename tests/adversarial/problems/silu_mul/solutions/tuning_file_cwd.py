import json
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def silu_mul_kernel(g_ptr, u_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    g = tl.load(g_ptr + offs, mask=mask, other=0.0)
    u = tl.load(u_ptr + offs, mask=mask, other=0.0)
    tl.store(out_ptr + offs, g * tl.sigmoid(g) * u, mask=mask)


class ModelNew(nn.Module):
    def forward(self, gate, up):
        gate, up = gate.contiguous(), up.contiguous()
        out = torch.empty_like(gate)
        n = gate.numel()
        try:
            block = json.load(open("silu_mul_tuning.json"))["block"]
        except (OSError, ValueError):
            block = 1024
            with open("silu_mul_tuning.json", "w") as f:
                json.dump({"block": block}, f)
        silu_mul_kernel[(triton.cdiv(n, block),)](gate, up, out, n, BLOCK=block)
        return out
