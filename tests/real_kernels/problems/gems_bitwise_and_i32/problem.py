"""bitwise_and"""

import torch
import torch.nn as nn

rows = 64
cols = 512

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y):
        return x & y


def get_inputs():
    return [torch.randint(0, 1000, (rows, cols), dtype=torch.int32), torch.randint(0, 1000, (rows, cols), dtype=torch.int32)]


def get_init_inputs():
    return []
