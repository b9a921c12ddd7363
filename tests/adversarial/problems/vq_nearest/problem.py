import torch
import torch.nn as nn

POINTS = 200
CODES = 96
DIM = 32


class Model(nn.Module):
    """Index of the nearest code vector."""

    def forward(self, x, codes):
        d = (codes * codes).sum(1)[None, :] - 2.0 * (x @ codes.t())
        return torch.argmin(d, dim=1)


def get_inputs():
    return [torch.randn(POINTS, DIM), torch.randn(CODES, DIM)]


def get_init_inputs():
    return []


def get_input_groups():
    codes = torch.randn(CODES, DIM)
    half = CODES // 2
    codes[half : 2 * half] = codes[:half] + 0.02 * torch.randn(half, DIM)
    return [[torch.randn(POINTS, DIM), codes]]
