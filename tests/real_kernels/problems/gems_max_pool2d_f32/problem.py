"""max_pool2d"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 2
channels = 4
size = 20

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        values, indices = F.max_pool2d(x, 3, 2, 1, return_indices=True)
        return values, indices


def get_inputs():
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs():
    return []
