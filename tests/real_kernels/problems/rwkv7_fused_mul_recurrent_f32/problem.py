"""rwkv7"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 1
seq = 64
heads = 2
dim_k = 32
dim_v = 32

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, r, w, k, v, kk, a):
        state = r.new_zeros(r.shape[0], r.shape[2], r.shape[3], v.shape[3])
        out = []
        for i in range(r.shape[1]):
            removed = (-kk[:, i, :, :, None] * state).sum(-2)
            state = state * w[:, i].exp()[..., None] + (kk * a)[:, i, :, :, None] * removed[:, :, None]
            state = state + k[:, i, :, :, None] * v[:, i, :, None]
            out.append((state * r[:, i, :, :, None]).sum(-2))
        return torch.stack(out, 1), state


def get_inputs():
    return [torch.randn(batch, seq, heads, dim_k, dtype=torch.float32), -0.606531 * torch.sigmoid(torch.randn(batch, seq, heads, dim_k)), torch.randn(batch, seq, heads, dim_k, dtype=torch.float32), torch.randn(batch, seq, heads, dim_v, dtype=torch.float32), F.normalize(torch.randn(batch, seq, heads, dim_k), dim=-1).to(torch.float32), torch.rand(batch, seq, heads, dim_k)]


def get_init_inputs():
    return []
