"""fused_neighborhood_attention"""

import torch
import torch.nn as nn

batch = 1
heads = 2
seq = 128
dim = 64
window = 7

class Model(nn.Module):
    def __init__(self, kernel_size):
        super().__init__()
        self.kernel_size = kernel_size

    def forward(self, q, k, v):
        n = q.shape[-2]
        pos = torch.arange(n, device=q.device)
        near = (pos[:, None] - pos[None]).abs() <= self.kernel_size // 2
        s = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
        return torch.softmax(s.masked_fill(~near, float("-inf")), dim=-1) @ v


def get_inputs():
    return [torch.randn(batch, heads, seq, dim), torch.randn(batch, heads, seq, dim), torch.randn(batch, heads, seq, dim)]


def get_init_inputs():
    return [window]
