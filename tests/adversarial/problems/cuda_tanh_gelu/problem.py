"""GELU by the hyperbolic tangent."""

import math

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


rows = 32
columns = 500


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
