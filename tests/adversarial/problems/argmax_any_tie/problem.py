import torch
import torch.nn as nn

ROWS = 12
COLS = 200


class Model(nn.Module):
    """An index at which the row has its largest value; any of them if there are several."""

    def forward(self, x):
        return torch.argmax(x, dim=1)


def get_inputs():
    return [torch.randint(0, 6, (ROWS, COLS)).float()]


def get_init_inputs():
    return []
