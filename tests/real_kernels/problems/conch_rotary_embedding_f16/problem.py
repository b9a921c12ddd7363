"""rotary_embedding"""

import torch
import torch.nn as nn

tokens = 32
heads = 4
kv_heads = 2
dim = 64
length = 128

class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        if dim % 2:
            raise ValueError("dim must be even")
        self.dim = dim

    def forward(self, pos, q, k, cache):
        cos, sin = cache[pos].chunk(2, dim=-1)
        def rot(x):
            h = x.view(x.shape[0], -1, 2 * cos.shape[1])
            a, b = h.chunk(2, dim=-1)
            c, s = cos[:, None], sin[:, None]
            return torch.cat((a * c - b * s, b * c + a * s), -1).view(x.shape).to(x.dtype)
        return rot(q), rot(k)


def get_inputs():
    f = torch.outer(torch.arange(length).float(), 1.0 / 10000.0 ** (torch.arange(0, dim, 2).float() / dim))
    cache = torch.cat((f.cos(), f.sin()), -1).to(torch.float16)
    return [torch.randint(0, length, (tokens,)), torch.randn(tokens, heads * dim, dtype=torch.float16), torch.randn(tokens, kv_heads * dim, dtype=torch.float16), cache]


def get_init_inputs():
    return [dim]
