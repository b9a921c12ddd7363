"""Product of two float16 matrices."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


rows = 64
inner = 512
columns = 80


def get_inputs():
    return [torch.randn(rows, inner).half(), torch.randn(inner, columns).half()]


def get_init_inputs():
    return []
