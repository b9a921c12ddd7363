"""rope"""

import torch
import torch.nn as nn

batch = 1
heads = 8
kv_heads = 8
seq = 64
dim = 64

def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def cos_sin(n, dim, dtype):
    inv = 1.0 / 10000.0 ** (torch.arange(0, dim, 2).float() / dim)
    f = torch.outer(torch.arange(n).float(), inv)
    f = torch.cat((f, f), dim=-1)[None]
    return f.cos().to(dtype), f.sin().to(dtype)


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, cos, sin):
        c, s = cos[:, None], sin[:, None]
        return q * c + rotate_half(q) * s, k * c + rotate_half(k) * s


def get_inputs():
    q = torch.randn(batch, heads, seq, dim, dtype=torch.float32)
    k = torch.randn(batch, kv_heads, seq, dim, dtype=torch.float32)
    return [q, k, *cos_sin(seq, dim, torch.float32)]


def get_init_inputs():
    return []
