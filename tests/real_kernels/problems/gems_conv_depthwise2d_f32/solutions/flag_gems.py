import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self, c, k):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(c, 1, k, k) * 0.3)
        self.bias = nn.Parameter(torch.randn(c) * 0.1)

    def forward(self, x):
        return flag_gems._conv_depthwise2d(x, self.weight, [3, 3], self.bias, [1, 1], [1, 1], [1, 1])
