"""stack"""

import torch
import torch.nn as nn

rows = 32
cols = 48

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y):
        return torch.stack([x, y], dim=1)


def get_inputs():
    return [torch.randn(rows, cols, dtype=torch.bfloat16), torch.randn(rows, cols, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
