import torch
import torch.nn as nn

ROWS = 48
COLS = 200


class Model(nn.Module):
    """x * sigmoid(x) for any strides."""

    def forward(self, x):
        return x * torch.sigmoid(x)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []


def get_input_groups():
    big = torch.randn(ROWS + 2, COLS + 8)
    return [
        [big[1:-1, :COLS]],
        [big.reshape(-1)[1 : 1 + ROWS * COLS].view(ROWS, COLS)],
        [torch.randn(COLS, ROWS).t()],
        [torch.randn(ROWS, 2 * COLS)[:, ::2]],
        [torch.randn(ROWS, 1).expand(ROWS, COLS)],
    ]
