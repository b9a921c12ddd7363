"""rotary"""

import torch
import torch.nn as nn

batch = 1
seq = 64
heads = 4
dim = 64

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, cos, sin):
        x1, x2 = x.float().chunk(2, dim=-1)
        c, s = cos.float()[:, None], sin.float()[:, None]
        return torch.cat((x1 * c - x2 * s, x1 * s + x2 * c), -1).to(x.dtype)


def get_inputs():
    f = torch.outer(torch.arange(seq).float(), 1.0 / 10000.0 ** (torch.arange(0, dim, 2).float() / dim))
    return [torch.randn(batch, seq, heads, dim, dtype=torch.bfloat16), f.cos().to(torch.bfloat16), f.sin().to(torch.bfloat16)]


def get_init_inputs():
    return []
