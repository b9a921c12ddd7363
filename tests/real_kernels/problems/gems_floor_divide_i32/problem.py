"""floor_divide"""

import torch
import torch.nn as nn

rows = 64
cols = 512

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y):
        return torch.floor_divide(x, y)


def get_inputs():
    return [torch.randint(-100, 100, (rows, cols), dtype=torch.int32), torch.randint(1, 10, (rows, cols), dtype=torch.int32)]


def get_init_inputs():
    return []
