"""flash_attention"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 1
seq = 128
heads = 2
dim = 64

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, v):
        q, k, v = (i.transpose(1, 2) for i in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)


def get_inputs():
    return [torch.randn(batch, seq, heads, dim, dtype=torch.float16), torch.randn(batch, seq, heads, dim, dtype=torch.float16), torch.randn(batch, seq, heads, dim, dtype=torch.float16)]


def get_init_inputs():
    return []
