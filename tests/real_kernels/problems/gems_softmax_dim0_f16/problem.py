"""softmax"""

import torch
import torch.nn as nn

a = 8
b = 64
c = 32

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(a, b, c, dtype=torch.float16)]


def get_init_inputs():
    return []
