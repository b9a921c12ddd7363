"""cummax"""

import torch
import torch.nn as nn

rows = 64
cols = 512

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        values, indices = torch.cummax(x, dim=1)
        return values, indices


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
