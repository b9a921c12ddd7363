"""Group normalisation with weight and bias."""
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.gn = nn.GroupNorm(groups, channels)

    def forward(self, x):
        return self.gn(x)

batch_size = 4
channels = 12
groups = 3
height = 7
width = 9

def get_inputs():
    return [torch.randn(batch_size, channels, height, width)]

def get_init_inputs():
    return [groups, channels]
