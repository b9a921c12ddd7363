import torch
import torch.nn as nn

ROWS = 96
COLS = 1000


class Model(nn.Module):
    """Index of the largest value of each row."""

    def forward(self, x):
        return torch.argmax(x, dim=1)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []


def get_input_groups():
    # distinct values, all within 0.03 percent of each other
    near = torch.stack([1.0 + torch.randperm(COLS).float() * 2.0**-22 for _ in range(ROWS)])
    return [[near]]
