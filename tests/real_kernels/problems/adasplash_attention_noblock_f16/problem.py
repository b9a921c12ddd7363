"""entmax_attention"""

import torch
import torch.nn as nn

batch = 1
heads = 2
seq = 128
dim = 64

def entmax15(z):
    """exact 1.5-entmax over the last dimension (Peters et al. 2019)"""
    z = z / 2
    z = z - z.amax(-1, keepdim=True)
    s = torch.sort(z, -1, descending=True).values
    k = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
    mean, mean_sq = s.cumsum(-1) / k, (s * s).cumsum(-1) / k
    tau = mean - torch.sqrt(((1 - k * (mean_sq - mean * mean)) / k).clamp(min=0))
    n = (tau <= s).sum(-1, keepdim=True)
    return (z - tau.gather(-1, n - 1)).clamp(min=0) ** 2


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, v):
        s = (q.float() @ k.float().transpose(-1, -2)) * q.shape[-1] ** -0.5
        return (entmax15(s) @ v.float()).to(v.dtype)


def get_inputs():
    return [torch.randn(batch, heads, seq, dim, dtype=torch.float16), torch.randn(batch, heads, seq, dim, dtype=torch.float16), torch.randn(batch, heads, seq, dim, dtype=torch.float16)]


def get_init_inputs():
    return []
