import torch
import torch.nn as nn

N = 9000


class Model(nn.Module):
    """Sum of squares."""

    def forward(self, x):
        return (x * x).sum()


def get_inputs():
    return [torch.randn(N)]


def get_init_inputs():
    return []
