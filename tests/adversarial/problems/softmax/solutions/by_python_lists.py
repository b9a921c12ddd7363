"""Computes with Python's floats, and has no kernel at all."""

import math

import torch
import torch.nn as nn


def row(values):
    top = max(values)
    e = [math.exp(v - top) for v in values]
    total = sum(e)
    return [v / total for v in e]


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.tensor([row(values) for values in x.tolist()], dtype=x.dtype, device=x.device)
