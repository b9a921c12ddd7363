"""gemm_a8w8"""

import torch
import torch.nn as nn

m = 64
n = 96
k = 128

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b, row, col):
        return ((a.float() @ b.float().t()) * row.float()[:, None] * col.float()[None]).to(torch.float16)


def get_inputs():
    return [torch.randint(-127, 128, (m, k), dtype=torch.int8), torch.randint(-127, 128, (n, k), dtype=torch.int8), torch.rand(m, dtype=torch.float16) * 0.02, torch.rand(n, dtype=torch.float16) * 0.02]


def get_init_inputs():
    return []
