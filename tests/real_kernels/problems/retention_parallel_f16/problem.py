"""retention"""

import torch
import torch.nn as nn

batch = 1
seq = 128
heads = 2
dim_k = 64
dim_v = 64

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, v):
        log_gamma = (1 - 2.0 ** (-5.0 - torch.arange(q.shape[2], device=q.device).float())).log()

        n = q.shape[1]
        i = torch.arange(n, device=q.device)
        d = (i[:, None] - i[None]).float()
        decay = torch.where(d >= 0, (log_gamma[:, None, None] * d.clamp(min=0)).exp(), 0.0)
        s = torch.einsum("bihd,bjhd->bhij", q.float(), k.float()) * q.shape[-1] ** -0.5 * decay
        return torch.einsum("bhij,bjhd->bihd", s, v.float()).to(v.dtype)


def get_inputs():
    return [torch.randn(batch, seq, heads, dim_k, dtype=torch.float16), torch.randn(batch, seq, heads, dim_k, dtype=torch.float16), torch.randn(batch, seq, heads, dim_v, dtype=torch.float16)]


def get_init_inputs():
    return []
