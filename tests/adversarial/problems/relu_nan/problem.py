import torch
import torch.nn as nn

ROWS = 20
COLS = 333


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []


def get_input_groups():
    x = torch.randn(ROWS, COLS)
    x[::3, ::5] = float("nan")
    x[1, :7] = float("inf")
    x[2, :7] = -float("inf")
    return [[x]]
