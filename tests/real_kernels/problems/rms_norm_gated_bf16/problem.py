"""fused_norm_gate"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 2
seq = 32
heads = 2
hidden = 64

class Model(nn.Module):
    def __init__(self, hidden_size, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(hidden_size, dtype=torch.bfloat16))

    def forward(self, x, g):
        h = x.float()
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight.float()
        return (h * F.silu(g.float())).to(x.dtype)


def get_inputs():
    return [torch.randn(batch, seq, heads, hidden, dtype=torch.bfloat16), torch.randn(batch, seq, heads, hidden, dtype=torch.bfloat16)]


def get_init_inputs():
    return [hidden]
