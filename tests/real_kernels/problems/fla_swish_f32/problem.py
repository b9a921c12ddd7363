"""swish"""

import torch
import torch.nn as nn
import torch.nn.functional as F

rows = 64
hidden = 512

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return F.silu(x)


def get_inputs():
    return [torch.randn(rows, hidden, dtype=torch.float32)]


def get_init_inputs():
    return []
