"""cat"""

import torch
import torch.nn as nn

rows = 32
cols = 48

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y):
        return torch.cat([x, y], dim=1)


def get_inputs():
    return [torch.randn(rows, cols), torch.randn(rows, 2 * cols)]


def get_init_inputs():
    return []
