"""rwkv7_gate_output"""

import torch
import torch.nn as nn

batch = 1
seq = 64
heads = 2
dim = 64

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, o, r, k, r_k, v, g):
        return (o + ((r * k * r_k[None, None]).sum(-1, keepdim=True) * v).view(o.shape)) * g


def get_inputs():
    return [torch.randn(batch, seq, heads * dim, dtype=torch.bfloat16), torch.randn(batch, seq, heads, dim, dtype=torch.bfloat16), torch.randn(batch, seq, heads, dim, dtype=torch.bfloat16), torch.randn(heads, dim, dtype=torch.bfloat16), torch.randn(batch, seq, heads, dim, dtype=torch.bfloat16), torch.randn(batch, seq, heads * dim, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
