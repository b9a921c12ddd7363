import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self, hidden_size, groups):
        super().__init__()
        self.groups = groups
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.bias = nn.Parameter(torch.zeros(hidden_size))

    def forward(self, x):
        n, c, h, w = x.shape
        return flag_gems.group_norm(x, self.weight, self.bias, n, c, h * w, self.groups)[0]
