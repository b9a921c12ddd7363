"""instance_norm"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 2
channels = 8
height = 12
width = 12

class Model(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.bias = nn.Parameter(torch.zeros(hidden_size))

    def forward(self, x):
        return F.instance_norm(x, weight=self.weight, bias=self.bias)


def get_inputs():
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return [channels]
