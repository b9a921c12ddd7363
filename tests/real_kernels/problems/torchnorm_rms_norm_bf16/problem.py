"""rms_norm"""

import torch
import torch.nn as nn
import torch.nn.functional as F

rows = 64
hidden = 512

class Model(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight.to(x.dtype), 1e-6)


def get_inputs():
    return [torch.randn(rows, hidden, dtype=torch.bfloat16)]


def get_init_inputs():
    return [hidden]
