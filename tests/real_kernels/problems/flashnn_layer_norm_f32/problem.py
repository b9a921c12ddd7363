"""layer_norm"""

import torch
import torch.nn as nn
import torch.nn.functional as F

rows = 32
hidden = 512

class Model(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.bias = nn.Parameter(torch.zeros(hidden_size))

    def forward(self, x):
        return F.layer_norm(x, (x.shape[-1],), self.weight, self.bias)


def get_inputs():
    return [torch.randn(rows, hidden)]


def get_init_inputs():
    return [hidden]
