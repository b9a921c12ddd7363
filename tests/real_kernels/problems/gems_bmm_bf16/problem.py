"""bmm"""

import torch
import torch.nn as nn

batch = 3
m = 64
k = 64
n = 48

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return torch.bmm(a, b)


def get_inputs():
    return [torch.randn(batch, m, k, dtype=torch.bfloat16), torch.randn(batch, k, n, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
