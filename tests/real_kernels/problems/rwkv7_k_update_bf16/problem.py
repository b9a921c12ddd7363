"""rwkv7_k_update"""

import torch
import torch.nn as nn

batch = 2
seq = 64
hidden = 256

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, k, a, ka):
        return k.addcmul(k * (a - 1), ka)


def get_inputs():
    return [torch.randn(batch, seq, hidden, dtype=torch.bfloat16), torch.rand(batch, seq, hidden, dtype=torch.bfloat16), torch.rand(1, 1, hidden, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
