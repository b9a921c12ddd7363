"""Scores, mask and softmax in an own kernel, the product with the values by torch."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def weights_kernel(q_ptr, k_ptr, out_ptr, L, D, scale, BL: tl.constexpr, BD: tl.constexpr):
    row = tl.program_id(0)
    head = tl.program_id(1)
    rd = tl.arange(0, BD)
    rn = tl.arange(0, BL)
    q = tl.load(q_ptr + (head * L + row) * D + rd, mask=rd < D, other=0.0)
    k = tl.load(
        k_ptr + (head * L + rn[:, None]) * D + rd[None, :],
        mask=(rn[:, None] < L) & (rd[None, :] < D),
        other=0.0,
    )
    s = tl.sum(q[None, :] * k, axis=1) * scale
    s = tl.where(rn <= row, s, -float("inf"))
    e = tl.exp(s - tl.max(s, axis=0))
    tl.store(out_ptr + (head * L + row) * L + rn, e / tl.sum(e, axis=0), mask=rn < L)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        q, k = q.contiguous(), k.contiguous()
        B, H, L, D = q.shape
        weights = torch.empty(B, H, L, L, device=q.device, dtype=q.dtype)
        weights_kernel[(L, B * H)](
            q, k, weights, L, D, D**-0.5, BL=triton.next_power_of_2(L), BD=triton.next_power_of_2(D)
        )
        return torch.matmul(weights, v)
