"""index_add"""

import torch
import torch.nn as nn

rows = 64
cols = 128
picks = 32

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, index, src):
        return torch.index_add(x, 0, index, src, alpha=0.5)


def get_inputs():
    return [torch.randn(rows, cols), torch.randperm(rows)[:picks], torch.randn(picks, cols)]


def get_init_inputs():
    return []
