import torch
import torch.nn as nn

ROWS = 30
COLS = 250


class Model(nn.Module):
    """Keeps x inside (lo, hi) or where flag is set; negates the rest."""

    def forward(self, x, flag):
        inside = (x > -0.5) & (x < 0.75)
        return torch.where(inside | flag, x, -2.0 * x)


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.rand(ROWS, COLS) < 0.3]


def get_init_inputs():
    return []
