import torch
import torch.nn as nn

N = 5000


class Model(nn.Module):
    """Largest value and largest magnitude."""

    def forward(self, x):
        return torch.stack([x.max(), x.abs().max()])


def get_inputs():
    return [torch.randn(N)]


def get_init_inputs():
    return []


def get_input_groups():
    return [[-1.0 - torch.rand(N)]]
