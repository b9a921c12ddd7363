import torch
import torch.nn as nn
from liger_kernel.transformers.functional import liger_dyt


class ModelNew(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1) * 0.5)
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.bias = nn.Parameter(torch.zeros(hidden_size))

    def forward(self, x):
        return liger_dyt(x, self.alpha, self.weight, self.bias)
