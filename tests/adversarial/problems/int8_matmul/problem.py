import torch
import torch.nn as nn

M = 40
N = 48
K = 160


class Model(nn.Module):
    def forward(self, a, b):
        return a.to(torch.int32) @ b.to(torch.int32)


def get_inputs():
    return [torch.randint(-128, 128, (M, K), dtype=torch.int8), torch.randint(-128, 128, (K, N), dtype=torch.int8)]


def get_init_inputs():
    return []
