"""sort"""

import torch
import torch.nn as nn

rows = 8
cols = 300

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        values, indices = torch.sort(x, dim=-1, stable=True)
        return values, indices


def get_inputs():
    return [torch.randint(0, 20, (rows, cols), dtype=torch.int32)]


def get_init_inputs():
    return []
