"""rwkv7_addcmul"""

import torch
import torch.nn as nn

batch = 2
seq = 64
hidden = 256

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, delta, xr, xw, xk, xv, xa, xg):
        return tuple(torch.addcmul(x, delta, i) for i in (xr, xw, xk, xv, xa, xg))


def get_inputs():
    return [torch.randn(batch, seq, hidden, dtype=torch.bfloat16), torch.randn(batch, seq, hidden, dtype=torch.bfloat16), *(torch.rand(1, 1, hidden, dtype=torch.bfloat16) for _ in range(6))]


def get_init_inputs():
    return []
