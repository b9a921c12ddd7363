import torch
import torch.nn as nn

ROWS = 32
COLS = 777


class Model(nn.Module):
    """Mean of three horizontal neighbours, zero outside."""

    def forward(self, x):
        p = torch.nn.functional.pad(x, (1, 1))
        return (p[:, :-2] + p[:, 1:-1] + p[:, 2:]) / 3.0


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
