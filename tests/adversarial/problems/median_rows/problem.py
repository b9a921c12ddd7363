import torch
import torch.nn as nn

ROWS = 12
COLS = 97


class Model(nn.Module):
    """Lower median of each row and an index at which it stands."""

    def forward(self, x):
        return torch.median(x, dim=1)


def get_inputs():
    return [torch.randint(-6, 7, (ROWS, COLS)).float()]


def get_init_inputs():
    return []
