"""scaled_int8_mm"""

import torch
import torch.nn as nn

m = 64
n = 96
k = 128

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b, row, col):
        return ((a.float() @ b.float()) * row[:, None].float() * col.float()).to(row.dtype)


def get_inputs():
    return [torch.randint(-127, 128, (m, k), dtype=torch.int8), torch.randint(-127, 128, (n, k), dtype=torch.int8).t(), torch.rand(m, dtype=torch.bfloat16) * 0.01, torch.rand(n, dtype=torch.bfloat16) * 0.01]


def get_init_inputs():
    return []
