"""index_add"""

import torch
import torch.nn as nn

rows = 16
cols = 64
picks = 40

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, index, src):
        return torch.index_add(x, 0, index, src)


def get_inputs():
    return [torch.randn(rows, cols), torch.randint(0, rows, (picks,)), torch.randn(picks, cols)]


def get_init_inputs():
    return []
