import torch
import torch.nn as nn

B = 3
M = 37
N = 50


class Model(nn.Module):
    """a + b with broadcasting in three dimensions."""

    def forward(self, a, b):
        return torch.tanh(a + b)


def get_inputs():
    return [torch.randn(B, M, 1), torch.randn(1, M, N)]


def get_init_inputs():
    return []


def get_input_groups():
    return [
        [torch.randn(B, 1, 1).expand(B, M, 1), torch.randn(1, N, M).transpose(1, 2)],
        [torch.randn(1, 1, 1), torch.randn(B, 1, N)],
    ]
