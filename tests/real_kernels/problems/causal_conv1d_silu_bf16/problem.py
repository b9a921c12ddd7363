"""short_convolution"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 2
seq = 64
hidden = 128
width = 4

class Model(nn.Module):
    def __init__(self, hidden_size, kernel_size):
        super().__init__()
        self.weight = nn.Parameter((torch.randn(hidden_size, kernel_size) * 0.5).to(torch.bfloat16))

    def forward(self, x):
        h = F.pad(x.float().transpose(1, 2), (self.weight.shape[1] - 1, 0))
        return F.silu(F.conv1d(h, self.weight.float()[:, None], groups=x.shape[-1])).transpose(1, 2).to(x.dtype)


def get_inputs():
    return [torch.randn(batch, seq, hidden, dtype=torch.bfloat16)]


def get_init_inputs():
    return [hidden, width]
