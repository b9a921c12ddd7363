"""token_shift"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 2
seq = 64
hidden = 256

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return F.pad(x, (0, 0, 1, -1)) - x


def get_inputs():
    return [torch.randn(batch, seq, hidden, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
