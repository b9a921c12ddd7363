"""mv"""

import torch
import torch.nn as nn

m = 128
k = 200

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, x):
        return a @ x


def get_inputs():
    return [torch.randn(m, k), torch.randn(k)]


def get_init_inputs():
    return []
