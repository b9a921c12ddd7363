"""gelu_tanh_and_mul"""

import torch
import torch.nn as nn
import torch.nn.functional as F

rows = 32
inter = 512

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        a, b = x.chunk(2, dim=-1)
        return (F.gelu(a.float(), approximate="tanh") * b.float()).to(x.dtype)


def get_inputs():
    return [torch.randn(rows, 2 * inter, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
