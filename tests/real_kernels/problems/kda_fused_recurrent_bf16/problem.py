"""kda"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 1
seq = 64
heads = 2
dim_k = 32
dim_v = 32

def recurrence(q, k, v, decay, scale, beta=None):
    """q, k: [B, T, H, K], v: [B, T, H, V], decay (log) broadcastable to [B, T, H, K, 1]; beta: delta rule"""
    out_type = v.dtype
    q, k, v, decay = q.float() * scale, k.float(), v.float(), decay.float()
    state = q.new_zeros(q.shape[0], q.shape[2], q.shape[3], v.shape[3])
    out = []
    for i in range(q.shape[1]):
        state = state * decay[:, i].exp()
        new = v[:, i]
        if beta is not None:
            new = (new - (state * k[:, i, :, :, None]).sum(-2)) * beta[:, i, :, None].float()
        state = state + k[:, i, :, :, None] * new[:, :, None]
        out.append((state * q[:, i, :, :, None]).sum(-2))
    return torch.stack(out, 1).to(out_type), state


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, v, g, beta):
        return recurrence(q, k, v, g[..., None], q.shape[-1] ** -0.5, beta)


def get_inputs():
    return [F.normalize(torch.randn(batch, seq, heads, dim_k), dim=-1).to(torch.bfloat16), F.normalize(torch.randn(batch, seq, heads, dim_k), dim=-1).to(torch.bfloat16), torch.randn(batch, seq, heads, dim_v, dtype=torch.bfloat16), F.logsigmoid(torch.randn(batch, seq, heads, dim_k)), torch.rand(batch, seq, heads, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
