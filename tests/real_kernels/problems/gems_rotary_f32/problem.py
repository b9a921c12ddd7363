"""rotary"""

import torch
import torch.nn as nn

tokens = 32
heads = 4
dim = 64
length = 64

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, cos, sin, pos):
        c, s = torch.cat((cos, cos), -1)[pos][:, None], torch.cat((sin, sin), -1)[pos][:, None]
        def half(x):
            a, b = x.chunk(2, dim=-1)
            return torch.cat((-b, a), dim=-1)
        return q * c + half(q) * s, k * c + half(k) * s


def get_inputs():
    f = torch.outer(torch.arange(length).float(), 1.0 / 10000.0 ** (torch.arange(0, dim, 2).float() / dim))
    return [torch.randn(tokens, heads, dim), torch.randn(tokens, heads, dim), f.cos(), f.sin(), torch.randint(0, length, (tokens,))]


def get_init_inputs():
    return []
