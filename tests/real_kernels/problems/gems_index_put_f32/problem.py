"""index_put"""

import torch
import torch.nn as nn

rows = 64
cols = 64
picks = 32

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, i, j, v):
        return torch.index_put(x, (i, j), v, accumulate=True)


def get_inputs():
    return [torch.randn(rows, cols), torch.randint(0, rows, (picks,)), torch.randint(0, cols, (picks,)), torch.randn(picks)]


def get_init_inputs():
    return []
