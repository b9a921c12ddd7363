"""Maximum over the last axis of a matrix."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.max(x, dim=1)[0]


batch_size = 128
dim = 500


def get_inputs():
    return [torch.randn(batch_size, dim)]


def get_init_inputs():
    return []
