"""hgrn"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 2
seq = 64
hidden = 128

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, g):
        h = torch.zeros_like(x[:, 0])
        out = []
        for i in range(x.shape[1]):
            h = g[:, i].exp() * h + x[:, i]
            out.append(h)
        return torch.stack(out, 1), h


def get_inputs():
    return [torch.randn(batch, seq, hidden), F.logsigmoid(torch.randn(batch, seq, hidden))]


def get_init_inputs():
    return []
