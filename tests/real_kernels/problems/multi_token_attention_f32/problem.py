"""multi_token_attention"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 1
heads = 4
seq = 64
kernel = 3

class Model(nn.Module):
    def __init__(self, channels, k):
        super().__init__()
        self.padding = k // 2
        self.weight = nn.Parameter(torch.randn(channels, channels, k, k) * 0.1)
        self.bias = nn.Parameter(torch.randn(channels) * 0.1)

    def forward(self, scores):
        n = scores.shape[-1]
        future = torch.triu(torch.ones(n, n, dtype=torch.bool, device=scores.device), diagonal=1)
        probs = torch.softmax(scores.masked_fill(future, -1e9), dim=-1)
        return F.conv2d(probs, self.weight, self.bias, padding=self.padding).masked_fill(future, 0.0)


def get_inputs():
    return [torch.randn(batch, heads, seq, seq)]


def get_init_inputs():
    return [heads, kernel]
