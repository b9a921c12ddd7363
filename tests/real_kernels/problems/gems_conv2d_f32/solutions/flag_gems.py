import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self, cin, cout, k):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cout, cin, k, k) * 0.1)
        self.bias = nn.Parameter(torch.randn(cout) * 0.1)

    def forward(self, x):
        return flag_gems.conv2d(x, self.weight, self.bias, 1, 1)
