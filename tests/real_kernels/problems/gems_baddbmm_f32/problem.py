"""baddbmm"""

import torch
import torch.nn as nn

batch = 2
m = 48
k = 64
n = 40

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, c, a, b):
        return torch.baddbmm(c, a, b, beta=0.5, alpha=1.5)


def get_inputs():
    return [torch.randn(batch, m, n), torch.randn(batch, m, k), torch.randn(batch, k, n)]


def get_init_inputs():
    return []
