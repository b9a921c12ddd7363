"""outer"""

import torch
import torch.nn as nn

m = 96
n = 72

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y):
        return torch.outer(x, y)


def get_inputs():
    return [torch.randn(m), torch.randn(n)]


def get_init_inputs():
    return []
