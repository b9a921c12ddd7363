"""forgetting_attn"""

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

    def forward(self, q, k, v, g):
        n = q.shape[1]
        causal = torch.ones(n, n, dtype=torch.bool, device=q.device).tril()
        s = torch.einsum("bihd,bjhd->bhij", q.float(), k.float()) * q.shape[-1] ** -0.5

        c = g.float().cumsum(1).transpose(1, 2)
        s = s + c[..., :, None] - c[..., None, :]
        return torch.einsum("bhij,bjhd->bihd", torch.softmax(s.masked_fill(~causal, float("-inf")), -1), v.float()).to(v.dtype)


def get_inputs():
    return [torch.randn(batch, seq, heads, dim_k, dtype=torch.float32), torch.randn(batch, seq, heads, dim_k, dtype=torch.float32), torch.randn(batch, seq, heads, dim_v, dtype=torch.float32), F.logsigmoid(torch.randn(batch, seq, heads))]


def get_init_inputs():
    return []
