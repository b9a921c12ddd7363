"""Scaled dot-product attention with a causal mask."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, q, k, v):
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        length = q.size(-2)
        mask = torch.tril(torch.ones(length, length, dtype=torch.bool, device=q.device))
        return F.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1) @ v


batch_size = 2
heads = 2
length = 80
head_dim = 32


def get_inputs():
    return [torch.randn(batch_size, heads, length, head_dim) for _ in range(3)]


def get_init_inputs():
    return []
