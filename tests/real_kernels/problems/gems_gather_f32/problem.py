"""gather"""

import torch
import torch.nn as nn

rows = 32
cols = 256
picks = 40

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, index):
        return torch.gather(x, 1, index)


def get_inputs():
    return [torch.randn(rows, cols), torch.randint(0, cols, (rows, picks))]


def get_init_inputs():
    return []
