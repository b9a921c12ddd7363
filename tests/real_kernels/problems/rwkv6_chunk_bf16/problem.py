"""rwkv6"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 1
seq = 128
heads = 2
dim_k = 64
dim_v = 64

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, r, k, v, w, u):
        scale, r_, k_, v_, w_, u_ = r.shape[-1] ** -0.5, r.float(), k.float(), v.float(), w.float(), u.float()
        state = r_.new_zeros(r.shape[0], r.shape[2], r.shape[3], v.shape[3])
        out = []
        for i in range(r.shape[1]):
            kv = k_[:, i, :, :, None] * v_[:, i, :, None]
            out.append(((state + u_[None, :, :, None] * kv) * (scale * r_[:, i])[..., None]).sum(-2))
            state = state * w_[:, i].exp()[..., None] + kv
        return torch.stack(out, 1).to(v.dtype), state


def get_inputs():
    return [torch.randn(batch, seq, heads, dim_k, dtype=torch.bfloat16), torch.randn(batch, seq, heads, dim_k, dtype=torch.bfloat16), torch.randn(batch, seq, heads, dim_v, dtype=torch.bfloat16), F.logsigmoid(torch.randn(batch, seq, heads, dim_k)).to(torch.bfloat16), torch.randn(heads, dim_k, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
