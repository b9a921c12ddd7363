"""The native function gelu of torch._C._nn."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch._C._nn.gelu(x, approximate="tanh")
