"""rwkv6"""

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

    def forward(self, r, k, v, w, u):
        scale = r.shape[-1] ** -0.5
        state = r.new_zeros(r.shape[0], r.shape[2], r.shape[3], v.shape[3])
        out = []
        for i in range(r.shape[1]):
            kv = k[:, i, :, :, None] * v[:, i, :, None]
            out.append(((state + u[None, :, :, None] * kv) * (scale * r[:, i])[..., None]).sum(-2))
            state = state * w[:, i].exp()[..., None] + kv
        return torch.stack(out, 1), state


def get_inputs():
    return [torch.randn(batch, seq, heads, dim_k, dtype=torch.float32), torch.randn(batch, seq, heads, dim_k, dtype=torch.float32), torch.randn(batch, seq, heads, dim_v, dtype=torch.float32), F.logsigmoid(torch.randn(batch, seq, heads, dim_k)).to(torch.float32), torch.randn(heads, dim_k, dtype=torch.float32)]


def get_init_inputs():
    return []
