"""conv2d"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 2
cin = 8
cout = 16
size = 16
kernel = 3

class Model(nn.Module):
    def __init__(self, cin, cout, k):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cout, cin, k, k) * 0.1)
        self.bias = nn.Parameter(torch.randn(cout) * 0.1)

    def forward(self, x):
        return F.conv2d(x, self.weight, self.bias, stride=1, padding=1)


def get_inputs():
    return [torch.randn(batch, cin, size, size)]


def get_init_inputs():
    return [cin, cout, kernel]
