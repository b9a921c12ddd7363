"""A convolution without a bias."""

import torch
import torch.nn.functional as F

class Model(torch.nn.Module):
    def __init__(self): super().__init__(); self.conv = torch.nn.Conv2d(8, 16, 3, bias=False)
    def forward(self, x): return self.conv(x)
def get_inputs(): return [torch.randn(2, 8, 14, 14)]
def get_init_inputs(): return []
