"""Softmax over the last axis; the contract names strides, huge values, masked and undefined elements."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=-1)


batch_size = 64
dim = 512


def get_inputs():
    return [torch.randn(batch_size, dim)]


def get_init_inputs():
    return []


def get_input_groups():
    masked = torch.randn(33, 129)
    masked[:, 100:] = -float("inf")
    undefined = torch.randn(8, 96)
    undefined[3, 7] = float("nan")
    overflow = torch.randn(8, 96)
    overflow[2, 5] = float("inf")
    return [
        [torch.randn(batch_size, dim)],
        [torch.randn(32, 300) * 100.0],
        [torch.randn(16, 257) + 500.0],
        [torch.randn(20, 200)[:, :150]],
        [torch.randn(24, 40)[::2]],
        [masked],
        [undefined],
        [overflow],
        [torch.randn(5, 1)],
    ]
