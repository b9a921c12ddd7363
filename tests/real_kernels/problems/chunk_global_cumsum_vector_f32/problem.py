"""cumsum"""

import torch
import torch.nn as nn

batch = 2
seq = 128
heads = 2
dim = 64

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, s):
        return s.cumsum(1)


def get_inputs():
    return [torch.randn(batch, seq, heads, dim)]


def get_init_inputs():
    return []
