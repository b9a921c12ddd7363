"""Depthwise 1D convolution."""
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, kernel_size, padding=kernel_size // 2, groups=channels)

    def forward(self, x):
        return self.conv(x)

batch_size = 3
channels = 10
length = 61

def get_inputs():
    return [torch.randn(batch_size, channels, length)]

def get_init_inputs():
    return [channels, 5]
