"""sparsemax"""

import torch
import torch.nn as nn

rows = 32
cols = 512

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        z, _ = torch.sort(x, dim=-1, descending=True)
        k = torch.arange(1, x.shape[-1] + 1, device=x.device, dtype=x.dtype)
        cs = z.cumsum(-1) - 1
        support = (k * z > cs).sum(-1, keepdim=True)
        tau = cs.gather(-1, support - 1) / support.to(x.dtype)
        return torch.clamp(x - tau, min=0)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
