"""dyt"""

import torch
import torch.nn as nn

rows = 64
hidden = 1024

class Model(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1) * 0.5)
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.bias = nn.Parameter(torch.zeros(hidden_size))

    def forward(self, x):
        return self.weight * torch.tanh(self.alpha * x) + self.bias


def get_inputs():
    return [torch.randn(rows, hidden)]


def get_init_inputs():
    return [hidden]
