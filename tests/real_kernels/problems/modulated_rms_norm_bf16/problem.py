"""modulated_rms_norm"""

import torch
import torch.nn as nn

batch = 2
seq = 32
hidden = 512

class Model(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(hidden_size, dtype=torch.bfloat16))

    def forward(self, x, scale, shift):
        h = x.float()
        h = (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype) * self.weight
        return (1 + scale[:, None]) * h + shift[:, None]


def get_inputs():
    return [torch.randn(batch, seq, hidden, dtype=torch.bfloat16), torch.randn(batch, hidden, dtype=torch.bfloat16), torch.randn(batch, hidden, dtype=torch.bfloat16)]


def get_init_inputs():
    return [hidden]
