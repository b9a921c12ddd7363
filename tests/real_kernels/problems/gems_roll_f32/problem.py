"""roll"""

import torch
import torch.nn as nn

rows = 32
cols = 48

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.roll(x, (3, -5), (0, 1))


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
