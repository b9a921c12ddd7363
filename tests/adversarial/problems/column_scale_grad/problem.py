"""Columns that are scaled, with the gradients of x and of the scales."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, columns: int):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight


check_grad = True
rows = 4096
columns = 256


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return [columns]
