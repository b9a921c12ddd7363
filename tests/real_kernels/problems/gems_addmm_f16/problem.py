"""addmm"""

import torch
import torch.nn as nn

m = 64
k = 96
n = 72

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, c, a, b):
        return torch.addmm(c, a, b, beta=0.5, alpha=2.0)


def get_inputs():
    return [torch.randn(n, dtype=torch.float16), torch.randn(m, k, dtype=torch.float16), torch.randn(k, n, dtype=torch.float16)]


def get_init_inputs():
    return []
