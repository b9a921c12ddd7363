"""sigmoid"""

import torch
import torch.nn as nn

rows = 64
hidden = 512

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.sigmoid(x)


def get_inputs():
    return [torch.randn(rows, hidden, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
