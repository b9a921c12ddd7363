import torch
import torch.nn as nn

M = 40
N = 36
K = 200


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs():
    return []


def get_input_groups():
    a = torch.randn(M, K)
    a[3] = float("nan")
    a[17, 5] = float("nan")
    c = torch.randn(M, K)
    c[8, K - 1] = float("inf")
    return [[a, torch.randn(K, N)], [c, torch.rand(K, N) + 0.5]]
