"""group_norm"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 2
channels = 32
groups = 8
length = 256

class Model(nn.Module):
    def __init__(self, num_channels, num_groups, eps=1e-6):
        super().__init__()
        self.groups, self.channels, self.eps = num_groups, num_channels, eps
        self.weight = nn.Parameter(torch.ones(num_channels))
        self.bias = nn.Parameter(torch.zeros(num_channels))

    def forward(self, x):
        return F.group_norm(x, self.groups, self.weight, self.bias, self.eps)


def get_inputs():
    return [torch.randn(batch, channels, length)]


def get_init_inputs():
    return [channels, groups]
