"""weight_norm"""

import torch
import torch.nn as nn

out = 48
inp = 96

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, v, g):
        return v * (g / v.norm(dim=1, keepdim=True))


def get_inputs():
    return [torch.randn(out, inp), torch.rand(out, 1) + 0.5]


def get_init_inputs():
    return []
