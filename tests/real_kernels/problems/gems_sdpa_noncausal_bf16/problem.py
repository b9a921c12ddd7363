"""attention"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 1
heads = 2
seq = 96
dim = 64

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)


def get_inputs():
    return [torch.randn(batch, heads, seq, dim, dtype=torch.bfloat16), torch.randn(batch, heads, seq, dim, dtype=torch.bfloat16), torch.randn(batch, heads, seq, dim, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
