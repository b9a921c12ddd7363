"""Exact sum of 32-bit integers into 64 bits."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.sum(x, dim=1)


rows = 60
columns = 400
largest = 2**31 - 1


def get_inputs():
    return [torch.randint(0, largest, (rows, columns), dtype=torch.int32)]


def get_init_inputs():
    return []
