"""geglu"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 2
seq = 32
inter = 1024

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, gate, up):
        return F.gelu(gate.float(), approximate="tanh").to(gate.dtype) * up


def get_inputs():
    return [torch.randn(batch, seq, inter, dtype=torch.bfloat16), torch.randn(batch, seq, inter, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
