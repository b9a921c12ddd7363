"""scatter"""

import torch
import torch.nn as nn

rows = 32
cols = 256
picks = 80

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, index, src):
        return x.scatter(1, index, src, reduce="add")


def get_inputs():
    return [torch.randn(rows, cols), torch.randint(0, cols, (rows, picks)), torch.randn(rows, picks)]


def get_init_inputs():
    return []
