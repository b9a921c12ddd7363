"""remainder"""

import torch
import torch.nn as nn

rows = 64
cols = 512

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y):
        return torch.remainder(x, y)


def get_inputs():
    return [torch.randn(rows, cols), torch.rand(rows, cols) + 0.5]


def get_init_inputs():
    return []
