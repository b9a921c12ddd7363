"""relu_squared"""

import torch
import torch.nn as nn
import torch.nn.functional as F

rows = 64
hidden = 1024

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return F.relu(x).square()


def get_inputs():
    return [torch.randn(rows, hidden, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
