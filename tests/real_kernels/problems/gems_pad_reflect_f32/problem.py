"""pad"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 2
channels = 3
height = 16
width = 20

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return F.pad(x, (1, 2, 3, 1), mode="reflect")


def get_inputs():
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return []
