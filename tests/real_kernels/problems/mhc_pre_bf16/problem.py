"""mhc_pre"""

import torch
import torch.nn as nn

batch = 2
seq = 16
streams = 4
hidden = 256

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, h_pre):
        return (x.float() * h_pre[..., None]).sum(-2).to(x.dtype)


def get_inputs():
    return [torch.randn(batch, seq, streams, hidden, dtype=torch.bfloat16), torch.rand(batch, seq, streams)]


def get_init_inputs():
    return []
