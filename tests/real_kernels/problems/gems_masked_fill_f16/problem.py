"""masked_fill"""

import torch
import torch.nn as nn

rows = 64
cols = 512

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, mask):
        return x.masked_fill(mask, -10000.0)


def get_inputs():
    return [torch.randn(rows, cols, dtype=torch.float16), torch.rand(rows, cols) < 0.3]


def get_init_inputs():
    return []
