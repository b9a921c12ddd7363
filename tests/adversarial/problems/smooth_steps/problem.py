import torch
import torch.nn as nn

N = 3000
STEPS = 4


class Model(nn.Module):
    """Repeated 3-point smoothing with zero borders."""

    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def forward(self, x):
        for _ in range(self.steps):
            p = torch.nn.functional.pad(x, (1, 1))
            x = 0.25 * p[:-2] + 0.5 * p[1:-1] + 0.25 * p[2:]
        return x


def get_inputs():
    return [torch.randn(N)]


def get_init_inputs():
    return [STEPS]
