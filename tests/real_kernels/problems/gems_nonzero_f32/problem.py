"""nonzero"""

import torch
import torch.nn as nn
import torch.nn.functional as F

rows = 16
cols = 64

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.nonzero(x)


def get_inputs():
    return [F.relu(torch.randn(rows, cols))]


def get_init_inputs():
    return []
