"""swiglu"""

import torch
import torch.nn as nn
import torch.nn.functional as F

rows = 64
inter = 1024

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, gate, up):
        return F.silu(gate.float()).to(gate.dtype) * up


def get_inputs():
    return [torch.randn(rows, inter, dtype=torch.bfloat16), torch.randn(rows, inter, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
