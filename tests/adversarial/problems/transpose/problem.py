"""Contiguous transpose of a batch of matrices."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.transpose(1, 2).contiguous()


batch_size = 3
rows = 70
columns = 100


def get_inputs():
    return [torch.randn(batch_size, rows, columns)]


def get_init_inputs():
    return []
