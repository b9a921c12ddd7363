"""mhc_post_res"""

import torch
import torch.nn as nn

batch = 2
seq = 16
streams = 4
hidden = 256

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, f_out, h_post, h_res):
        y = torch.einsum("btoi,btic->btoc", h_res, x.float())
        return (y + h_post[..., None] * f_out.float()[..., None, :]).to(x.dtype)


def get_inputs():
    return [torch.randn(batch, seq, streams, hidden, dtype=torch.bfloat16), torch.randn(batch, seq, hidden, dtype=torch.bfloat16), torch.rand(batch, seq, streams), torch.softmax(torch.randn(batch, seq, streams, streams), dim=-1)]


def get_init_inputs():
    return []
