"""A sum of two tensors with a Python number as a factor."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, y, alpha):
        return x + alpha * y


batch_size = 64
dim = 300
alpha = 0.5


def get_inputs():
    return [torch.randn(batch_size, dim), torch.randn(batch_size, dim), alpha]


def get_init_inputs():
    return []
