"""bincount"""

import torch
import torch.nn as nn

n = 800
bins = 64

class Model(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, x):
        return torch.bincount(x, minlength=self.bins)


def get_inputs():
    return [torch.randint(0, bins, (n,))]


def get_init_inputs():
    return [bins]
