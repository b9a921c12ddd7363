"""triu"""

import torch
import torch.nn as nn

rows = 96
cols = 80

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.triu(x, diagonal=1)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
