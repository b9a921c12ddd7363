"""Layer normalisation with its weight and bias."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features: int):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


batch_size = 64
features = 768


def get_inputs():
    return [torch.randn(batch_size, features)]


def get_init_inputs():
    return [features]
