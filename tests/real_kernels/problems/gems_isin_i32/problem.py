"""isin"""

import torch
import torch.nn as nn

n = 500
m = 30

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y):
        return torch.isin(x, y)


def get_inputs():
    return [torch.randint(0, 200, (n,), dtype=torch.int32), torch.randint(0, 200, (m,), dtype=torch.int32)]


def get_init_inputs():
    return []
