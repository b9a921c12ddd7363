"""avg_pool2d"""

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
        return F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)


def get_inputs():
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs():
    return []
