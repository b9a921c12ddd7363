"""permute_unpermute"""

import torch
import torch.nn as nn

tokens = 32
hidden = 256
experts = 8
k = 2

class Model(nn.Module):
    def __init__(self, experts):
        super().__init__()
        self.experts = experts

    def forward(self, x, ids, prob):
        return (x.float() * prob.sum(-1, keepdim=True)).to(x.dtype)


def get_inputs():
    return [torch.randn(tokens, hidden, dtype=torch.bfloat16), torch.rand(tokens, experts).argsort(1)[:, :k].to(torch.int32), torch.softmax(torch.randn(tokens, k), -1)]


def get_init_inputs():
    return [experts]
