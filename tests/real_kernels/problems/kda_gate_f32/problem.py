"""kda_gate"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 2
seq = 64
heads = 2
dim = 64

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, g, a_log, dt_bias):
        return -a_log.exp()[:, None] * F.softplus(g + dt_bias.view(g.shape[-2:]))


def get_inputs():
    return [torch.randn(batch, seq, heads, dim), torch.rand(heads), torch.randn(heads * dim)]


def get_init_inputs():
    return []
