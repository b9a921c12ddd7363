"""index_select"""

import torch
import torch.nn as nn

rows = 64
cols = 128
picks = 32

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, index):
        return torch.index_select(x, 0, index)


def get_inputs():
    return [torch.randn(rows, cols, dtype=torch.float16), torch.randint(0, rows, (picks,))]


def get_init_inputs():
    return []
