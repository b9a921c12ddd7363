"""stickbreaking_attn"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 1
seq = 128
heads = 2
dim_k = 64
dim_v = 64

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, v):
        n = q.shape[1]
        mask = torch.ones(n, n, dtype=torch.bool, device=q.device).tril(-1)
        z = torch.einsum("bihd,bjhd->bhij", q, k) * q.shape[-1] ** -0.5
        rest = F.logsigmoid(-z).masked_fill(~mask, 0.0)
        att = (F.logsigmoid(z) + rest.flip(-1).cumsum(-1).flip(-1) - rest).masked_fill(~mask, float("-inf")).exp()
        return torch.einsum("bhij,bjhd->bihd", att, v), rest.sum(-1).exp().transpose(1, 2)


def get_inputs():
    return [torch.randn(batch, seq, heads, dim_k, dtype=torch.float32), torch.randn(batch, seq, heads, dim_k, dtype=torch.float32), torch.randn(batch, seq, heads, dim_v, dtype=torch.float32)]


def get_init_inputs():
    return []
