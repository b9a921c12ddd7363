"""conv_depthwise2d"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 1
channels = 8
size = 16
kernel = 3

class Model(nn.Module):
    def __init__(self, c, k):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(c, 1, k, k) * 0.3)
        self.bias = nn.Parameter(torch.randn(c) * 0.1)

    def forward(self, x):
        return F.conv2d(x, self.weight, self.bias, padding=1, groups=x.shape[1])


def get_inputs():
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs():
    return [channels, kernel]
