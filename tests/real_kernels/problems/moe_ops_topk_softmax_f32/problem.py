"""topk_softmax"""

import torch
import torch.nn as nn

tokens = 64
experts = 32
k = 4

class Model(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, logits):
        v, i = torch.topk(logits, self.k)
        return torch.softmax(v, -1), i.to(torch.int32)


def get_inputs():
    return [torch.randn(tokens, experts)]


def get_init_inputs():
    return [k]
