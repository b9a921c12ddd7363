"""unique"""

import torch
import torch.nn as nn

n = 600

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        values, inverse = torch.unique(x, sorted=True, return_inverse=True)
        return values, inverse


def get_inputs():
    return [torch.randint(0, 100, (n,))]


def get_init_inputs():
    return []
