"""swiglu"""

import torch
import torch.nn as nn
import torch.nn.functional as F

rows = 64
cols = 512

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        a, b = x.chunk(2, dim=-1)
        return F.silu(a) * b


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
