"""int_scaled_matmul"""

import torch
import torch.nn as nn

m = 64
n = 96
k = 128

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b, s):
        return (a.float() @ b.float()) * s


def get_inputs():
    return [torch.randint(-127, 128, (m, k), dtype=torch.int8), torch.randint(-127, 128, (k, n), dtype=torch.int8), torch.rand(m, 1) * 0.01]


def get_init_inputs():
    return []
